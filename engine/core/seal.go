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
	"holdfast/engine/publish"
)

// Sealer encrypts secrets at rest with AES-256-GCM. Its key lies in a file
// apart from the metadata, so that a copy of the metadata alone gives no
// password away.
type Sealer struct {
	aead cipher.AEAD
	key  []byte
}

// loadSealer reads the key file, or makes it with mode 0600.
func loadSealer(path string) (Sealer, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		random := RandomBytes()
		key = random[:]
		err = publish.File(path, key, 0o600)
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

// Seal encrypts secret. What it is for is bound to it: a sealed text opens
// only for the same purpose.
func (s Sealer) Seal(purpose string, secret model.Secret) []byte {
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce)
	return s.aead.Seal(nonce, nonce, []byte(secret.Reveal()), []byte(purpose))
}

// Open decrypts what seal made for the same purpose.
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

// Signer signs what the appliance hands out and must know again.
type Signer struct {
	// macs are of its key, to be used again: to begin one takes longer than to
	// sign with it.
	macs *sync.Pool
}

func NewSigner(key []byte) Signer {
	return Signer{&sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

func (s Sealer) signer() Signer { return NewSigner(s.derive("holdfast signed urls")) }

// derive makes a key of its own for another purpose.
func (s Sealer) derive(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, s.key, nil, purpose, 32)
	if err != nil { // only for a length HKDF cannot give
		panic(err)
	}
	return key
}

func (s Signer) Sign(message string) []byte {
	mac := s.macs.Get().(hash.Hash)
	defer s.macs.Put(mac)
	mac.Reset()
	mac.Write([]byte(message))
	return mac.Sum(nil)
}

func (s Signer) Verify(message string, signature []byte) bool {
	return hmac.Equal(s.Sign(message), signature)
}
