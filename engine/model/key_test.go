package model

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func anyKey(t *testing.T) string {
	t.Helper()
	var random [32]byte
	_, _ = rand.Read(random[:])
	return FormatKey(random).Reveal()
}

func TestFormatKey(t *testing.T) {
	t.Parallel()
	var highest [32]byte
	copy(highest[:], bytes.Repeat([]byte{0xff}, 32))
	for _, tt := range []struct {
		name   string
		random [32]byte
		want   string
	}{
		// The last six characters are zlib.crc32 of the rest, in base 62, computed with Python.
		{"lowest", [32]byte{}, "sk_live_hf_0000000000000000000000000000000000000000000" + "3bC5vy"},
		{"highest", highest, "sk_live_hf_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1" + "229lOw"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := FormatKey(tt.random).Reveal()
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if len(got) != len("sk_live_hf_")+43+6 || !WellFormedKey(got) {
				t.Errorf("%s is not well formed", got)
			}
		})
	}
}

// TestFormatKeyCarriesAllBits decodes the number with math/big.
func TestFormatKeyCarriesAllBits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		random := [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "random"))
		text := FormatKey(random).Reveal()
		body := text[len(KeyPrefix) : len(text)-keyChecksum]
		if got := fromBase62(body).FillBytes(make([]byte, 32)); !bytes.Equal(got, random[:]) {
			t.Fatalf("%x became %s, which is %x", random, body, got)
		}
		sum := fromBase62(text[len(text)-keyChecksum:]).Uint64()
		if want := crc32.ChecksumIEEE([]byte(text[:len(text)-keyChecksum])); sum != uint64(want) {
			t.Fatalf("the checksum is %d, want %d", sum, want)
		}
	})
}

func fromBase62(text string) *big.Int {
	n := new(big.Int)
	for _, c := range text {
		n.Mul(n, big.NewInt(62)).Add(n, big.NewInt(int64(strings.IndexRune(base62, c))))
	}
	return n
}

func TestEncodeBase62(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		number []byte
		width  int
		want   string
	}{
		{[]byte{0}, 6, "000000"},
		{[]byte{1}, 6, "000001"},
		{[]byte{61}, 6, "00000z"},
		{[]byte{62}, 6, "000010"},
		{[]byte{0x0f, 0x04}, 6, "000100"}, // 62²
		{[]byte{0x0f, 0x03}, 6, "0000zz"},
		{[]byte{0xff, 0xff, 0xff, 0xff}, 6, "4gfFC3"},
		{[]byte{0x36, 0x9b, 0x13, 0xe0}, 6, "100000"}, // 62⁵
		{[]byte{0x36, 0x9b, 0x13, 0xdf}, 6, "0zzzzz"},
		{[]byte{0, 0, 0, 0, 7}, 2, "07"},
	} {
		before := bytes.Clone(tt.number)
		if got := encodeBase62(tt.number, tt.width); got != tt.want {
			t.Errorf("%x is %s, want %s", tt.number, got, tt.want)
		}
		if !bytes.Equal(before, tt.number) {
			t.Errorf("encoding changed its input %x", before)
		}
	}
}

func TestWellFormedKeyRefusesEveryMistypedCharacter(t *testing.T) {
	t.Parallel()
	for range 20 {
		key := []byte(anyKey(t))
		for i, right := range key {
			for c := range 256 {
				if key[i] = byte(c); byte(c) != right && WellFormedKey(string(key)) {
					t.Fatalf("%q is well formed, with %q in place of %q at %d", key, rune(c), right, i)
				}
			}
			key[i] = right
		}
	}
}

func TestWellFormedKeyRefusesEveryTransposition(t *testing.T) {
	t.Parallel()
	for range 50 {
		key := []byte(anyKey(t))
		for i := range key {
			for j := range i {
				if key[i] == key[j] {
					continue
				}
				key[i], key[j] = key[j], key[i]
				if WellFormedKey(string(key)) {
					t.Fatalf("%q is well formed, with %d and %d exchanged", key, j, i)
				}
				key[i], key[j] = key[j], key[i]
			}
		}
	}
}

func TestWellFormedKeyRefuses(t *testing.T) {
	t.Parallel()
	key := anyKey(t)
	// Keys with a correct checksum but the wrong alphabet or prefix.
	foreign := KeyPrefix + strings.Repeat("-", keyRandom)
	other := "sk_test_hf_" + key[len(KeyPrefix):len(key)-keyChecksum]
	for name, text := range map[string]string{
		"nothing":           "",
		"only the prefix":   KeyPrefix,
		"one short":         key[:len(key)-1],
		"one long":          key + "0",
		"a space before":    " " + key,
		"a line end":        key + "\n",
		"other case":        strings.ToUpper(key),
		"no prefix":         strings.Repeat("x", len(KeyPrefix)) + key[len(KeyPrefix):],
		"a twice-sent key":  key + key,
		"no base62":         foreign + keyCheck(foreign),
		"another's prefix":  other + keyCheck(other),
		"a NUL in the body": key[:20] + "\x00" + key[21:],
	} {
		if WellFormedKey(text) {
			t.Errorf("%s is well formed: %q", name, text)
		}
	}
}

func FuzzWellFormedKey(f *testing.F) {
	f.Add(FormatKey([32]byte{}).Reveal())
	f.Add(FormatKey([32]byte{1, 2, 3}).Reveal())
	f.Add("sk_live_")
	f.Fuzz(func(t *testing.T, text string) {
		if !WellFormedKey(text) {
			return
		}
		body, check := text[:len(text)-keyChecksum], text[len(text)-keyChecksum:]
		if !strings.HasPrefix(text, "sk_live_hf_") || len(text) != 60 || fromBase62(check).Uint64() != uint64(crc32.ChecksumIEEE([]byte(body))) {
			t.Errorf("%q is well formed", text)
		}
	})
}

func TestHashKey(t *testing.T) {
	t.Parallel()
	key := anyKey(t)
	want := sha256.Sum256([]byte(key))
	if !bytes.Equal(HashKey(key), want[:]) {
		t.Error("the hash is not the SHA-256 of the text")
	}
}

func TestPreviewKey(t *testing.T) {
	t.Parallel()
	key := FormatKey([32]byte{})
	if got := PreviewKey(key); got != "sk_live_hf_…C5vy" {
		t.Errorf("got %q", got)
	}
}

func TestKeyUsable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) *time.Time { moment := now.Add(d); return &moment }
	for _, tt := range []struct {
		name string
		key  Key
		want bool
	}{
		{"for ever", Key{}, true},
		{"until later", Key{ExpiresAt: at(time.Nanosecond)}, true},
		{"expires now", Key{ExpiresAt: at(0)}, false},
		{"expired", Key{ExpiresAt: at(-time.Hour)}, false},
		{"revoked", Key{RevokedAt: at(-time.Hour)}, false},
		{"revoked before it expired", Key{RevokedAt: at(-time.Hour), ExpiresAt: at(time.Hour)}, false},
		{"revoked by a clock ahead", Key{RevokedAt: at(time.Hour)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.key.Usable(now); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestGeneratePassword(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		random := [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "random"))
		password := GeneratePassword(random)
		if text := password.Reveal(); len(text) != 32 || strings.Trim(text, base62) != "" {
			t.Fatalf("%x gives %q", random, text)
		}
	})
}
