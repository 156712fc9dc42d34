package blobstore

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// A record of the journal is a header, a note and, with flagBlob, a blob. All
// numbers are little-endian.
//
//	 0  mark of its segment, 8 bytes
//	 8  position of the record, 8 bytes: detects stale and misplaced records
//	16  number of its batch within the segment, 4 bytes
//	20  flags, 4 bytes: flagBlob, and flagFirst for the first of its batch
//	24  length of the note, 4 bytes
//	28  length of the blob, 4 bytes
//	32  CRC-32C of the note
//	36  CRC-32C of the blob
//	40  CRC-32C of the preceding 40 bytes
const (
	recordHeader = 44
	headerSum    = recordHeader - 4
	flagBlob     = 1
	flagFirst    = 2
)

// Position is the position of a record in the journal: the number of its segment and the offset in it. Positions are
// ordered like the records.
type Position uint64

// PositionOf returns the position at an offset of a segment.
func PositionOf(segment uint32, offset int64) Position {
	return Position(segment)<<32 | Position(offset)
}

// Segment returns the number of the segment that contains the position.
func (p Position) Segment() uint32 { return uint32(p >> 32) }

func (p Position) offset() int64 { return int64(p & 0xffffffff) }

// mark begins every record of one segment. It is random and secret, so that no blob content can be mistaken for a
// record.
type mark [8]byte

func newMark() (m mark) {
	rand.Read(m[:])
	return m
}

// record is a record to be written.
type record struct {
	note     []byte
	blob     []byte
	hasBlob  bool
	crc      uint32 // of blob
	value    any
	position Position
	batch    uint32
	first    bool // of its batch
}

// header returns the record's header in a segment with mark m. Note and blob follow it.
func (r *record) header(m mark) (h [recordHeader]byte) {
	copy(h[:], m[:])
	binary.LittleEndian.PutUint64(h[8:], uint64(r.position))
	binary.LittleEndian.PutUint32(h[16:], r.batch)
	binary.LittleEndian.PutUint32(h[20:], r.flags())
	binary.LittleEndian.PutUint32(h[24:], uint32(len(r.note)))
	binary.LittleEndian.PutUint32(h[28:], uint32(len(r.blob)))
	binary.LittleEndian.PutUint32(h[32:], crc32.Checksum(r.note, castagnoli))
	binary.LittleEndian.PutUint32(h[36:], r.crc)
	binary.LittleEndian.PutUint32(h[headerSum:], crc32.Checksum(h[:headerSum], castagnoli))
	return h
}

func (r *record) flags() (flags uint32) {
	if r.hasBlob {
		flags |= flagBlob
	}
	if r.first {
		flags |= flagFirst
	}
	return flags
}

// header is a parsed record header.
type header struct {
	batch            uint32
	flags            uint32
	noteLen, blobLen int64
	noteCRC, blobCRC uint32
}

// parseHeader parses the header of the record at position at.
func parseHeader(h []byte, m mark, at Position) (header, bool) {
	if len(h) < recordHeader || mark(h) != m ||
		binary.LittleEndian.Uint32(h[headerSum:]) != crc32.Checksum(h[:headerSum], castagnoli) ||
		Position(binary.LittleEndian.Uint64(h[8:])) != at {
		return header{}, false
	}
	return header{
		batch:   binary.LittleEndian.Uint32(h[16:]),
		flags:   binary.LittleEndian.Uint32(h[20:]),
		noteLen: int64(binary.LittleEndian.Uint32(h[24:])),
		blobLen: int64(binary.LittleEndian.Uint32(h[28:])),
		noteCRC: binary.LittleEndian.Uint32(h[32:]),
		blobCRC: binary.LittleEndian.Uint32(h[36:]),
	}, true
}

func (h header) size() int64 { return recordHeader + h.noteLen + h.blobLen }

// firstRead is the size of the first read of a record, which usually covers all of it.
const firstRead = 4096

// readRecord reads the record at a position into *into, which has at least firstRead bytes and is replaced by a
// larger buffer if that is not enough. The zero mark accepts the mark in the record. It returns ErrDamaged if the
// record differs from what was written.
func readRecord(r io.ReaderAt, m mark, at Position, into *[]byte) (h header, note, blob []byte, err error) {
	buf := (*into)[:firstRead]
	n, err := r.ReadAt(buf, at.offset())
	if err != nil && err != io.EOF && n < recordHeader {
		return header{}, nil, nil, fmt.Errorf("read journal: %w", err)
	}
	if m == (mark{}) && n >= len(m) {
		m = mark(buf)
	}
	h, ok := parseHeader(buf[:n], m, at)
	if !ok {
		return header{}, nil, nil, fmt.Errorf("header of journal record %x: %w", uint64(at), ErrDamaged)
	}
	if h.size() > int64(n) {
		buf = slices.Grow(buf[:n], int(h.size())-n)[:h.size()]
		*into = buf
		if _, err := r.ReadAt(buf[n:], at.offset()+int64(n)); err != nil && err != io.EOF {
			return header{}, nil, nil, fmt.Errorf("read journal: %w", err)
		}
	}
	note, blob = buf[recordHeader:recordHeader+h.noteLen], buf[recordHeader+h.noteLen:h.size()]
	return h, note, blob, h.check(at, note, blob)
}

// check verifies the note and the blob against their checksums.
func (h header) check(at Position, note, blob []byte) error {
	if crc32.Checksum(note, castagnoli) != h.noteCRC || crc32.Checksum(blob, castagnoli) != h.blobCRC {
		return fmt.Errorf("journal record %x: %w", uint64(at), ErrDamaged)
	}
	return nil
}
