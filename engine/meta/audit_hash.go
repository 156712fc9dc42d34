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

// hasher computes the hashes of a chain. It belongs to one goroutine.
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

// entry hashes the stored text of an entry with its own hash empty; the text
// includes the hash of the previous entry. It hashes the text, not the decoded
// entry, so that later fields and JSON's handling of invalid UTF-8 do not change
// the hash.
func (h hasher) entry(text []byte, hash string) (string, bool) {
	text, ok := bytes.CutSuffix(text, hashEnd(hash))
	return h.sum(text, hashEnd("")), ok
}

// mark authenticates a mark together with its bucket and organization.
func (h hasher) mark(bucket, organization string, m auditMark) string {
	return h.sum(fmt.Appendf(nil, "%s %q %d %s %d %t", bucket, organization, m.Number, m.Hash, m.Bytes, m.Damaged))
}

// hashEnd returns the end of an entry's text.
func hashEnd(hash string) []byte { return []byte(`,"hash":"` + hash + `"}`) }
