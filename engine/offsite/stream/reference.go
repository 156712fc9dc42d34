package stream

import (
	"encoding/binary"
	"encoding/hex"

	"holdfast/internal/sealed"
)

const (
	// PartSize is the size of every part of a file but the last. Sealed, it is just
	// below the size that the store accepts.
	PartSize = 1023 * sealed.SegmentSize
	// maxFile bounds the size of a file, 1 TiB.
	maxFile = 1 << 40
)

// Hash is a BLAKE3 hash.
type Hash [32]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Reference names a file in the store. Its zero value names none.
type Reference struct {
	Epoch Epoch
	ID    uint64 // within the epoch, from 1 on
	Size  int64
	Hash  Hash // of the content
}

// IsZero reports whether it names no file.
func (r Reference) IsZero() bool { return r == Reference{} }

// parts returns how many objects hold the file; an empty one needs none.
func (r Reference) parts() int64 { return (r.Size + PartSize - 1) / PartSize }

func (r Reference) partKey(part int64) string { return r.Epoch.partKey(r.ID, part) }

// partSize returns the size of the content of a part.
func (r Reference) partSize(part int64) int64 { return min(PartSize, r.Size-part*PartSize) }

func (r Reference) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(r.Epoch.Number))
	b = appendBytes(b, r.Epoch.Nonce)
	b = binary.AppendUvarint(b, r.ID)
	b = binary.AppendUvarint(b, uint64(r.Size))
	return append(b, r.Hash[:]...)
}

func (d *decoder) reference() Reference {
	r := Reference{
		Epoch: Epoch{uint32(d.number("an epoch", 1<<32-1)), d.string("an epoch")},
		ID:    d.uvarint("a file's number"),
		Size:  int64(d.number("a file's size", maxFile)),
		Hash:  d.hash("a file's hash"),
	}
	if _, ok := parseEpoch(r.Epoch.String()); !ok && d.err == nil {
		d.fail("an epoch")
	}
	return r
}
