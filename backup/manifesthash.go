package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// manifestHash computes a manifest's checksum while it passes: the SHA-256 of
// everything before the last line, which holds the checksum itself.
type manifestHash struct {
	hash hash.Hash
	last []byte // the line that may be the last
}

func newManifestHash() *manifestHash { return &manifestHash{hash: sha256.New()} }

// Write implements io.Writer. A line ends the hash's wait once another follows.
func (h *manifestHash) Write(p []byte) (int, error) {
	h.last = append(h.last, p...)
	if len(h.last) < 2 {
		return len(p), nil
	}
	end := bytes.LastIndexByte(h.last[:len(h.last)-1], '\n') + 1
	h.hash.Write(h.last[:end])
	h.last = append(h.last[:0], h.last[end:]...)
	return len(p), nil
}

func (h *manifestHash) sum() string { return hex.EncodeToString(h.hash.Sum(nil)) }
