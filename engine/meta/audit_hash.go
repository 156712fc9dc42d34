package meta

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"holdfast/engine/model"
)

// hasher makes the hashes of a chain. It belongs to one goroutine.
type hasher struct{ mac hash.Hash }

func newHasher(key []byte) hasher { return hasher{hmac.New(sha256.New, key)} }

func (h hasher) sum(parts ...[]byte) string {
	h.mac.Reset()
	for _, part := range parts {
		h.mac.Write(part)
	}
	var sum [sha256.Size]byte
	return hex.EncodeToString(h.mac.Sum(sum[:0]))
}

// seal fills in the entry's hash and returns the record to store.
func (h hasher) seal(entry *model.AuditEntry) ([]byte, error) {
	entry.Hash = ""
	text, err := json.Marshal(entry)
	if err != nil {
		return nil, fmt.Errorf("encode audit entry: %w", err)
	}
	unsealed, ok := bytes.CutSuffix(text, hashEnd(""))
	if !ok {
		return nil, errors.New("encode audit entry: the hash is not at its end")
	}
	entry.Hash = h.sum(text)
	return frame(append(unsealed, hashEnd(entry.Hash)...)), nil
}

// entry hashes the stored text of an entry with its own hash left empty, and
// so with the hash of the entry before it. It hashes the text, not the entry:
// fields that are added later, and what JSON makes of invalid UTF-8, leave the
// hash as it was.
func (h hasher) entry(text []byte, hash string) (string, bool) {
	text, ok := bytes.CutSuffix(text, hashEnd(hash))
	return h.sum(text, hashEnd("")), ok
}

// mark authenticates a mark and what it is of.
func (h hasher) mark(bucket, organization string, m auditMark) string {
	return h.sum(fmt.Appendf(nil, "%s %q %d %s %d %t", bucket, organization, m.Number, m.Hash, m.Bytes, m.Damaged))
}

// hashEnd is how an entry's text ends.
func hashEnd(hash string) []byte { return []byte(`,"hash":"` + hash + `"}`) }
