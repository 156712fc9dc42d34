package password

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"holdfast/engine/model"
)

func TestEasyToGuess(t *testing.T) {
	for _, text := range []string{
		"sunshine1234", "Sunshine2024!", "password1234", "P@ssw0rd1234", "passwordpassword", "qwertyuiop12", "123456789012",
		"aaaaaaaaaaaa", "abcdefghijkl", "zyxwvutsrqpo", "abc123abc123", "1q2w3e4r5t6y", "qazwsxedcrfv", "zaq12wsxcde3",
		"asdfghjkl;'\\", "1qaz2wsx3edc4rfv", "iloveyou1234", "letmeinletmein", "monkeymonkeymonkey", "Welcome2025!", "administrator",
		"changeme1234", "holdfast1234", "holdfastholdfast", "shop-database", "ada@example.com", "Football2020", strings.Repeat("ab", 60),
		strings.Repeat("password", 16),
	} {
		err := ForDatabase("password", model.NewSecret(text), "shop", "ada@example.com")
		if err == nil || !strings.HasPrefix(err.Error(), "password: is easy to guess") {
			t.Errorf("%s: %v (%.1f bits)", text, err, bits(text, []string{"shop"}))
		} else if strings.Contains(err.Error(), text) {
			t.Errorf("the message repeats the password: %v", err)
		}
	}
}

func TestHardToGuess(t *testing.T) {
	for _, text := range []string{
		"correct horse battery staple", "correct horse battery", "kV9#mQ2xLw7z", "long enough for bob", "fluffy-otter-9-lamp",
		"tjvxkqbnwzrp", "739104628571", "ÜbelKröteSchrank", "密码是我的狗的名字加上今天", `hunter2 p'a"s s\w%:/@?#ö`,
		model.GeneratePassword(sha256.Sum256([]byte("any"))).Reveal(),
	} {
		if err := ForPerson("password", model.NewSecret(text), "ada@example.com"); err != nil {
			t.Errorf("%s: %v (%.1f bits)", text, err, bits(text, nil))
		}
	}
}

// TestRandomIsHardToGuess draws passwords of the minimum length from the smallest common
// alphabets.
func TestRandomIsHardToGuess(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := make([]byte, Min)
		for i := range text {
			text[i] = 'a' + byte(draw.IntN(26))
		}
		if got := bits(string(text), nil); got < leastBits {
			t.Errorf("%s: %.1f bits", text, got)
		}
	}
}

func TestLength(t *testing.T) {
	long := func(n int) model.Secret { // hard to guess, n characters
		sum := sha256.Sum256([]byte("any"))
		return model.NewSecret(strings.Repeat("é"+hex.EncodeToString(sum[:]), 5)[:n])
	}
	for _, tt := range []struct {
		check func(field string, password model.Secret, about ...string) error
		n     int
		good  bool
	}{
		{ForPerson, 11, false},
		{ForPerson, 13, true},
		{ForPerson, 257, true},
		{ForPerson, 262, false},
		{ForDatabase, 11, false},
		{ForDatabase, 13, true},
		{ForDatabase, 128, true},
		{ForDatabase, 132, false},
	} {
		err := tt.check("new_password", long(tt.n))
		if good := err == nil; good != tt.good {
			t.Errorf("%d bytes: %v", tt.n, err)
		} else if !good && !strings.HasPrefix(err.Error(), "new_password: must have 12 to ") {
			t.Errorf("%d bytes: %v", tt.n, err)
		}
	}
}

func TestPrintable(t *testing.T) {
	for _, text := range []string{"tjvxkqbnwzrp\n", "tjvxkqbnwzrp\x00", "tjvxkqbnwzrp\xff", "tjvxkqbnwzrp\u200b"} {
		if err := ForDatabase("password", model.NewSecret(text)); err == nil || err.Error() != "password: must have printable characters only" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func BenchmarkLongest(b *testing.B) {
	for b.Loop() {
		bits(strings.Repeat("p4ssw0rd", MaxPerson/8), nil)
	}
}
