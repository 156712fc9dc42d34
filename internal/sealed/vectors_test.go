package sealed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// vector is one object of testdata/v1.json, which another implementation made: its
// plaintext is plain_size bytes, byte i of them i modulo 251.
type vector struct {
	Master    string `json:"master"`
	Number    uint32 `json:"number"`
	Name      string `json:"name"`
	Salt      string `json:"salt"`
	PlainSize int64  `json:"plain_size"`
	Sealed    string `json:"sealed"` // hexadecimal, left out of large ones
	SHA256    string `json:"sha256"` // of the sealed object
}

// TestVectors holds the format: what version 1 sealed is read, and sealed again
// gives the same bytes.
func TestVectors(t *testing.T) {
	file, err := os.ReadFile("testdata/v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(file, &vectors); err != nil || len(vectors) == 0 {
		t.Fatal(len(vectors), err)
	}
	for _, v := range vectors {
		plain := make([]byte, v.PlainSize)
		for i := range plain {
			plain[i] = byte(i % 251)
		}
		key := Key{v.Number, [masterSize]byte(unhex(t, v.Master))}
		body, err := Seal(key, v.Name, plainBody(plain))
		if err != nil {
			t.Fatal(err)
		}
		sealed := readBody(t, saltedWith(t, body.(*object), key, v))
		if got := sha256.Sum256(sealed); hex.EncodeToString(got[:]) != v.SHA256 {
			t.Errorf("%d bytes below %q seal to other bytes", v.PlainSize, v.Name)
		}
		if v.Sealed != "" && !bytes.Equal(sealed, unhex(t, v.Sealed)) {
			t.Errorf("%d bytes below %q seal to %x", v.PlainSize, v.Name, sealed)
		}
		if got, err := openAll(sealed, ringOf(t, key), v.Name); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%d bytes below %q do not come back: %v", v.PlainSize, v.Name, err)
		}
	}
}

// saltedWith exchanges the random salt of an object.
func saltedWith(t *testing.T, o *object, key Key, v vector) *object {
	t.Helper()
	copy(o.header[16:], unhex(t, v.Salt))
	s, check, err := key.derive(o.header[:], v.Name)
	if err != nil {
		t.Fatal(err)
	}
	o.suite = s
	copy(o.header[checkOffset:], check)
	return o
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
