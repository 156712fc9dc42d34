package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
)

const (
	masterSize = 32
	objectInfo = "holdfast sealed object v1\n"
)

// Key is a numbered master key. It prints as [redacted].
type Key struct {
	number uint32
	secret [masterSize]byte
}

// NewKey returns a random master key of that number.
func NewKey(number uint32) Key {
	k := Key{number: number}
	_, _ = rand.Read(k.secret[:]) // never fails, see crypto/rand
	return k
}

// Number returns the number of the key, which every object sealed with it carries.
func (k Key) Number() uint32 { return k.number }

// Format implements fmt.Formatter without showing the key.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[redacted]") }

// LogValue implements slog.LogValuer without showing the key.
func (k Key) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// suite encrypts and decrypts the segments of one object.
type suite struct {
	aead cipher.AEAD
	aad  []byte // header and name
}

// derive returns the suite of the object of that header and name, and the check that
// belongs into the header.
func (k Key) derive(header []byte, name string) (*suite, []byte, error) {
	fixed := header[:checkOffset]
	okm, err := hkdf.Key(sha256.New, k.secret[:], header[16:16+saltSize], objectInfo+string(fixed[:16])+name, 32+checkSize)
	if err != nil {
		return nil, nil, fmt.Errorf("derive the object's key: %w", err)
	}
	block, err := aes.NewCipher(okm[:32])
	if err != nil {
		return nil, nil, fmt.Errorf("derive the object's key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, nil, fmt.Errorf("derive the object's key: %w", err)
	}
	return &suite{aead, append(append([]byte{}, fixed...), name...)}, okm[32:], nil
}

// seal encrypts a segment in place and returns it with its tag. The capacity of
// plain must have space for that.
func (s *suite) seal(plain []byte, index int64, last bool) []byte {
	n := nonce(index, last)
	return s.aead.Seal(plain[:0], n[:], plain, s.aad)
}

// open decrypts a segment in place.
func (s *suite) open(segment []byte, index int64, last bool) ([]byte, error) {
	n := nonce(index, last)
	plain, err := s.aead.Open(segment[:0], n[:], segment, s.aad)
	if err != nil {
		return nil, fmt.Errorf("%w: segment %d is not what was sealed", ErrCorrupt, index)
	}
	return plain, nil
}

func nonce(index int64, last bool) [12]byte {
	var n [12]byte
	binary.BigEndian.PutUint64(n[3:], uint64(index))
	if last {
		n[11] = 1
	}
	return n
}
