package objectstore

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
)

// digests are the checksums of a body.
type digests struct {
	sha256 string // hexadecimal: what a request is signed with
	crc    string // CRC-32C in base64, as S3 writes it: what is kept with the object
}

// digester computes digests of what is written to it.
type digester struct{ sha, crc hash.Hash }

func newDigester() *digester { return &digester{sha256.New(), newCRC()} }

// newCRC returns a CRC-32C, which costs a tenth of a SHA-256.
func newCRC() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

func (d *digester) Write(p []byte) (int, error) {
	d.sha.Write(p)
	return d.crc.Write(p)
}

func (d *digester) digests() digests {
	return digests{hex.EncodeToString(d.sha.Sum(nil)), encodeCRC(d.crc)}
}

func encodeCRC(h hash.Hash) string { return base64.StdEncoding.EncodeToString(h.Sum(nil)) }
