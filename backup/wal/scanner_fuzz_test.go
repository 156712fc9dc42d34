package wal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"testing"
)

// walBuilder writes WAL: records of a length each, pages around them.
type walBuilder struct {
	bytes.Buffer
	start LSN
	prev  LSN
}

func (b *walBuilder) pos() LSN { return b.start + LSN(b.Len()) }

// page begins a page that continues rest bytes of a record.
func (b *walBuilder) page(rest int) {
	h := make([]byte, shortHeader, longHeader)
	binary.LittleEndian.PutUint16(h, 0xD118)
	if rest > 0 {
		h[2] |= firstIsContinued
	}
	binary.LittleEndian.PutUint32(h[4:], 1)
	binary.LittleEndian.PutUint64(h[8:], uint64(b.pos()))
	binary.LittleEndian.PutUint32(h[16:], uint32(rest))
	if b.pos()%smallSegment == 0 {
		h[2] |= hasLongHeader
		h = binary.LittleEndian.AppendUint64(h, 77)
		h = binary.LittleEndian.AppendUint32(h, smallSegment)
		h = binary.LittleEndian.AppendUint32(h, pageSize)
	}
	b.Write(h)
}

func (b *walBuilder) write(data []byte) {
	for len(data) > 0 {
		if b.pos()%pageSize == 0 {
			b.page(len(data))
		}
		n := min(len(data), pageSize-int(b.pos()%pageSize))
		b.Write(data[:n])
		data = data[n:]
	}
}

// record writes a record whose parts, behind its header, are body.
func (b *walBuilder) record(resource, info uint8, body []byte) {
	if b.pos()%pageSize == 0 {
		b.page(0)
	}
	at := b.pos()
	r := make([]byte, recordHeader, recordHeader+len(body))
	binary.LittleEndian.PutUint32(r, uint32(recordHeader+len(body)))
	binary.LittleEndian.PutUint64(r[8:], uint64(b.prev))
	r[16], r[17] = info, resource
	crc := crc32.Update(crc32.Checksum(body, castagnoli), castagnoli, r[:20])
	binary.LittleEndian.PutUint32(r[20:], crc)
	b.write(append(r, body...))
	b.Write(make([]byte, align8(b.pos())-b.pos()))
	b.prev = at
}

// commitBody is the body of a commit at a time in PostgreSQL's microseconds.
func commitBody(micros int64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{idMainShort, 8}, uint64(micros))
}

func builtWAL() *walBuilder {
	b := &walBuilder{start: smallSegment}
	for i := range 40 {
		b.record(ResourceXact, xactCommit, commitBody(int64(i)))
		b.record(21, 0, append([]byte{idMainLong, 0, 16, 0, 0}, bytes.Repeat([]byte{7}, 4096)...))
	}
	return b
}

// FuzzScanner: whatever the bytes, the scanner ends without a panic, sees the
// same in pieces as in a whole, and goes no further than there are bytes.
func FuzzScanner(f *testing.F) {
	whole := builtWAL().Bytes()
	whole = whole[:3*pageSize] // small inputs, many runs
	f.Add(whole, uint16(1000))
	f.Add(whole[:pageSize+99], uint16(7))
	damaged := bytes.Clone(whole)
	damaged[9000] ^= 1
	f.Add(damaged, uint16(8192))
	f.Add([]byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, piece uint16) {
		type seen struct{ records, changes, end uint64 }
		scan := func(piece int) (got seen) {
			s := NewScanner(ScannerConfig{SegmentSize: smallSegment, Timeline: 1}, smallSegment)
			var changes Changes
			for rest := data; len(rest) > 0 && s.Err() == nil; {
				n := min(len(rest), piece)
				s.Feed(rest[:n])
				for rest = rest[n:]; s.Next(); got.records++ {
					changes.Add(s.Record())
					s.Record().Outcome()
					if r := s.Record(); r.End <= r.Start || r.Start < smallSegment {
						t.Fatalf("a record from %v to %v", r.Start, r.End)
					}
				}
			}
			got.changes, got.end = uint64(len(changes.relations)), uint64(s.End())
			return got
		}
		if a, b := scan(int(piece)+1), scan(len(data)+1); a != b {
			t.Errorf("in pieces of %d: %+v, whole: %+v", piece, a, b)
		}
	})
}

// FuzzParts: a record of any content is taken apart or refused.
func FuzzParts(f *testing.F) {
	f.Add(commitBody(5))
	f.Add([]byte{0, 0x10, 0, 0, 4, 0, 0, 0, 5, 1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, body []byte) {
		r := Record{data: append(make([]byte, recordHeader), body...), length: recordHeader + len(body)}
		var parts Parts
		if err := parts.Read(&r); err == nil && len(parts.Main) > len(body) {
			t.Errorf("main data of %d bytes in %d", len(parts.Main), len(body))
		}
		var changes Changes
		for r.Resource = range uint8(10) {
			for _, info := range []uint8{0, 0x10, 0x20, 0x60, 0x80} {
				r.Info = info
				changes.Add(&r)
			}
		}
	})
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte("1\t0/3000000\tno recovery target specified\n\n2\t0/4000000\tbefore 2000-01-01\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := ParseHistory(9, text)
		if err == nil && len(h) > 0 && h.at(h[0].At, 9) == h[0].Timeline {
			t.Errorf("the fork itself belongs to the next timeline: %v", h)
		}
	})
}

// TestScannerFindsDamage: whichever byte of WAL is changed, the scanner stops
// at it, or the byte is one that means nothing (padding).
func TestScannerFindsDamage(t *testing.T) {
	t.Parallel()
	whole := builtWAL()
	end := whole.pos()
	scan := func(data []byte) LSN {
		s := NewScanner(ScannerConfig{SegmentSize: smallSegment, Timeline: 1, System: 77}, smallSegment)
		s.Feed(data)
		for s.Next() {
		}
		return s.End()
	}
	if got := scan(whole.Bytes()); got != end {
		t.Fatalf("undamaged WAL ends at %v, not %v", got, end)
	}
	missed := 0
	data := bytes.Clone(whole.Bytes())
	for i := range min(len(data), 3*pageSize) {
		data[i] ^= 0x40
		if scan(data) == end {
			missed++
		}
		data[i] ^= 0x40
	}
	// Padding behind records and in page headers.
	if missed > 150 {
		t.Errorf("%d of %d flipped bytes were not found", missed, 3*pageSize)
	}
}

// TestScannerOverwritten: the part of a record that a crash cut off is void.
func TestScannerOverwritten(t *testing.T) {
	t.Parallel()
	b := &walBuilder{start: smallSegment}
	b.record(ResourceXact, xactCommit, commitBody(1))
	before, prev := b.pos(), b.prev
	b.record(21, 0, append([]byte{idMainLong, 0, 64, 0, 0}, bytes.Repeat([]byte{7}, 16384)...))
	data := bytes.Clone(b.Bytes()[:pageSize])
	next := &walBuilder{start: smallSegment + pageSize, prev: prev}
	next.record(ResourceXact, xactCommit, commitBody(2))
	next.Bytes()[2] |= firstIsOverwritten
	s := NewScanner(ScannerConfig{SegmentSize: smallSegment, Timeline: 1}, smallSegment)
	s.Feed(append(data, next.Bytes()...))
	var starts []LSN
	for s.Next() {
		starts = append(starts, s.Record().Start)
	}
	if s.Err() != nil || len(starts) != 2 || starts[0] >= before || starts[1] != smallSegment+pageSize+shortHeader {
		t.Errorf("records at %v: %v", starts, s.Err())
	}
}

// FuzzChanges reads any summary of changed pages; what is one comes back as
// itself.
func FuzzChanges(f *testing.F) {
	var c Changes
	c.addPage(Relation{1663, 5, 16384}, 7)
	c.addPage(Relation{1663, 5, 16384}, 70000)
	c.addRelation(Relation{1664, 0, 1260})
	f.Add(c.encode())
	f.Add([]byte{0, 0, 0})
	f.Add([]byte{1, 1, 5, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := decodeChanges(in)
		if err != nil {
			return
		}
		again, err := decodeChanges(c.encode())
		if err != nil || again.everything != c.everything || !reflect.DeepEqual(again.databases, c.databases) || !reflect.DeepEqual(again.relations, c.relations) {
			t.Errorf("%v comes back as %v, %v", c, again, err)
		}
	})
}
