package sealed

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
)

const (
	// SegmentSize is the size of the plaintext of every segment but the last.
	SegmentSize = 1 << segmentPower
	// HeaderSize is the size of the header of a sealed object.
	HeaderSize = 64

	segmentPower  = 16
	tagSize       = 16
	sealedSegment = SegmentSize + tagSize
	formatVersion = 1
	magic         = "HOLDFAST"
	saltSize      = 32
	checkSize     = 16
	checkOffset   = HeaderSize - checkSize
)

// Size returns the sealed size of size bytes of plaintext.
func Size(size int64) int64 {
	return HeaderSize + size + segments(size)*tagSize
}

// PlainSize returns how many bytes of plaintext an object of a sealed size holds. It
// returns ErrCorrupt for a size that no sealed object has.
func PlainSize(sealedSize int64) (int64, error) {
	body := sealedSize - HeaderSize
	full, rest := body/sealedSegment, body%sealedSegment
	switch {
	case sealedSize < HeaderSize+tagSize, rest > 0 && rest < tagSize, full > 0 && rest == tagSize:
		return 0, fmt.Errorf("%w: no sealed object has %d bytes", ErrCorrupt, sealedSize)
	case rest > 0:
		return full*SegmentSize + rest - tagSize, nil
	}
	return full * SegmentSize, nil
}

// segments returns how many segments size bytes of plaintext make, at least one.
func segments(size int64) int64 {
	return max(1, (size+SegmentSize-1)/SegmentSize)
}

// newHeader returns the header, without its check, of an object that the key of that
// number seals.
func newHeader(number uint32) [HeaderSize]byte {
	var h [HeaderSize]byte
	copy(h[:], magic)
	h[8], h[9] = formatVersion, segmentPower
	binary.BigEndian.PutUint32(h[12:], number)
	_, _ = rand.Read(h[16 : 16+saltSize]) // never fails, see crypto/rand
	return h
}

// keyNumber returns the number of the master key that a header names. It checks all
// that can be checked without the key.
func keyNumber(header []byte) (uint32, error) {
	switch {
	case len(header) != HeaderSize:
		return 0, fmt.Errorf("%w: its header has %d bytes, not %d", ErrCorrupt, len(header), HeaderSize)
	case string(header[:len(magic)]) != magic:
		return 0, fmt.Errorf("%w: it does not begin as one does", ErrCorrupt)
	case header[8] != formatVersion:
		return 0, fmt.Errorf("%w: version %d", ErrVersion, header[8])
	case header[9] != segmentPower || header[10] != 0 || header[11] != 0:
		return 0, fmt.Errorf("%w: its header has values that version %d does not", ErrCorrupt, formatVersion)
	}
	return binary.BigEndian.Uint32(header[12:]), nil
}

// sameCheck compares two checks in constant time.
func sameCheck(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }
