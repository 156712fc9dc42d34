package blobstore

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
)

// Ref names a blob within its store. It is opaque: the store chooses it, the caller keeps it, and it is meaningless
// elsewhere. It consists of ASCII letters, digits and hyphens, at most 64 bytes.
type Ref string

// ErrBadRef means that this package did not make the Ref: the row it came from is damaged. The disk is not read.
var ErrBadRef = errors.New("malformed blob reference")

var (
	refForm       = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{32}$`)
	journalForm   = regexp.MustCompile(`^j[0-9a-f]{8}-[0-9a-f]{8}$`)
	directoryForm = regexp.MustCompile(`^[0-9a-f]{8}$`)
	idForm        = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// newID returns 128 random bits in hexadecimal, the last part of a Ref.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

func makeRef(directory uint32, id string) Ref {
	return Ref(directoryName(directory) + "-" + id)
}

// journalRef returns the Ref of the blob in the record at position at.
func journalRef(at Position) Ref {
	number := binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(at))
	text := [18]byte{0: 'j', 9: '-'}
	hex.Encode(text[1:9], number[:4])
	hex.Encode(text[10:], number[4:])
	return Ref(text[:])
}

// position returns the position of a blob in the journal, or false if the blob is a file.
func (r Ref) position() (Position, bool) {
	if !journalForm.MatchString(string(r)) {
		return 0, false
	}
	segment, _ := strconv.ParseUint(string(r[1:9]), 16, 32)
	offset, _ := strconv.ParseUint(string(r[10:]), 16, 32)
	return PositionOf(uint32(segment), int64(offset)), true
}

// Segment returns the number of the journal segment that contains the blob, or 0 if the blob is a file.
func (r Ref) Segment() uint32 {
	at, _ := r.position()
	return at.Segment()
}

func directoryName(n uint32) string { return fmt.Sprintf("%08x", n) }

func parseDirectoryName(name string) (uint32, bool) {
	if !directoryForm.MatchString(name) {
		return 0, false
	}
	n, err := strconv.ParseUint(name, 16, 32)
	return uint32(n), err == nil
}

// path returns the path of the blob below blobs. It refuses a Ref in any form but the store's, so no Ref can name a
// file elsewhere.
func (r Ref) path(blobs string) (string, error) {
	if !refForm.MatchString(string(r)) {
		return "", fmt.Errorf("%w: %.80q", ErrBadRef, string(r))
	}
	return filepath.Join(blobs, string(r[:8]), string(r[9:])), nil
}
