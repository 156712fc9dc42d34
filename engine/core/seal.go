package core

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"sync"

	"holdfast/engine/model"
	"holdfast/internal/durable"
)

// Sealer encrypts secrets at rest with AES-256-GCM. Its key is in a separate file, so
// that a copy of the metadata alone reveals no password.
type Sealer struct {
	aead cipher.AEAD
	key  []byte
}

// loadSealer reads the key file, or creates it with mode 0600.
func loadSealer(path string) (Sealer, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		random := RandomBytes()
		key = random[:]
		err = durable.WriteFile(path, key, 0o600)
	}
	if err != nil {
		return Sealer{}, fmt.Errorf("load secret key: %w", err)
	}
	if len(key) != 32 {
		return Sealer{}, fmt.Errorf("the secret key %s has %d bytes, not 32: bring the right file back", path, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return Sealer{}, fmt.Errorf("load secret key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return Sealer{}, fmt.Errorf("load secret key: %w", err)
	}
	return Sealer{aead: aead, key: key}, nil
}

// Seal encrypts secret and binds it to purpose: the sealed text opens only for the
// same purpose.
func (s Sealer) Seal(purpose string, secret model.Secret) []byte {
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce)
	return s.aead.Seal(nonce, nonce, []byte(secret.Reveal()), []byte(purpose))
}

// Open decrypts a text that Seal made for the same purpose.
func (s Sealer) Open(purpose string, sealed []byte) (model.Secret, error) {
	size := s.aead.NonceSize()
	if len(sealed) < size {
		return model.Secret{}, errors.New("open sealed secret: too short")
	}
	text, err := s.aead.Open(nil, sealed[:size], sealed[size:], []byte(purpose))
	if err != nil {
		return model.Secret{}, fmt.Errorf("open sealed secret (is secret.key the right file?): %w", err)
	}
	return model.NewSecret(string(text)), nil
}

// Signer signs tokens that the appliance issues and must later recognize.
type Signer struct {
	// macs are reused, because creating one takes longer than signing with it.
	macs *sync.Pool
}

// newSigner returns a signer with the key.
func newSigner(key []byte) Signer {
	return Signer{&sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

func (s Sealer) signer() Signer { return newSigner(s.derive("holdfast signed urls")) }

// derive derives a separate key for another purpose.
func (s Sealer) derive(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, s.key, nil, purpose, 32)
	if err != nil { // only for a length that HKDF does not support
		panic(err)
	}
	return key
}

// Sign returns the HMAC-SHA256 of the message.
func (s Signer) Sign(message string) []byte {
	mac := s.macs.Get().(hash.Hash)
	defer s.macs.Put(mac)
	mac.Reset()
	mac.Write([]byte(message))
	return mac.Sum(nil)
}

// Verify reports whether signature is the message's, in constant time.
func (s Signer) Verify(message string, signature []byte) bool {
	return hmac.Equal(s.Sign(message), signature)
}
