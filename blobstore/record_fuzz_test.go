package blobstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"
)

// FuzzRecord reads any bytes as a record of the journal, with a header whose checksum is correct: an accepted record
// is encoded to itself, anything else is damaged.
func FuzzRecord(f *testing.F) {
	r := record{note: []byte("note"), blob: []byte("blob"), hasBlob: true, crc: crc32.Checksum([]byte("blob"), castagnoli), position: PositionOf(3, 0), batch: 7, first: true}
	f.Add(r.bytes(newMark()))
	f.Add(make([]byte, recordHeader))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < recordHeader {
			return
		}
		const most = 1 << 20 // of a note and of a blob: the writer makes none that large
		binary.LittleEndian.PutUint32(b[24:], binary.LittleEndian.Uint32(b[24:])%most)
		binary.LittleEndian.PutUint32(b[28:], binary.LittleEndian.Uint32(b[28:])%most)
		binary.LittleEndian.PutUint32(b[headerSum:], crc32.Checksum(b[:headerSum], castagnoli))
		m := mark(b)
		at := Position(binary.LittleEndian.Uint64(b[8:])) &^ 0xffffffff // at the beginning of its segment
		buf := make([]byte, firstRead)
		h, note, blob, err := readRecord(bytes.NewReader(b), m, at, &buf)
		if err == nil {
			err = h.check(at, note, blob)
		}
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%v", err)
			}
			return
		}
		same := record{note: note, blob: blob, hasBlob: h.flags&flagBlob != 0, crc: h.blobCRC, position: at, batch: h.batch, first: h.flags&flagFirst != 0}
		if again := same.bytes(m); !bytes.HasPrefix(b, again) && h.flags&^(flagBlob|flagFirst) == 0 {
			t.Errorf("%x is read as %x", b, again)
		}
	})
}

// bytes returns the record in a segment with mark m.
func (r *record) bytes(m mark) []byte {
	h := r.header(m)
	return slices.Concat(h[:], r.note, r.blob)
}
