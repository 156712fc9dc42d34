package xlog_test

import (
	"bytes"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
)

func builtWAL() *xlogtest.Builder {
	b := &xlogtest.Builder{Start: xlogtest.SegmentSize}
	for i := range 40 {
		b.Commit(int64(i))
		b.Record(21, 0, xlogtest.MainData(bytes.Repeat([]byte{7}, 4096)))
	}
	return b
}

// FuzzScanner: for any bytes, the scanner ends without a panic, finds the same in pieces as in the whole, and does
// not read beyond the input.
func FuzzScanner(f *testing.F) {
	whole := builtWAL().Bytes()
	whole = whole[:3*xlog.PageSize] // small inputs, many runs
	f.Add(whole, uint16(1000))
	f.Add(whole[:xlog.PageSize+99], uint16(7))
	damaged := bytes.Clone(whole)
	damaged[9000] ^= 1
	f.Add(damaged, uint16(8192))
	f.Add([]byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, piece uint16) {
		type seen struct{ records, changes, end uint64 }
		scan := func(piece int) (got seen) {
			s := xlog.NewScanner(xlog.ScannerConfig{SegmentSize: xlogtest.SegmentSize, Timeline: 1}, xlogtest.SegmentSize)
			var changes xlog.Changes
			for rest := data; len(rest) > 0 && s.Err() == nil; {
				n := min(len(rest), piece)
				s.Feed(rest[:n])
				for rest = rest[n:]; s.Next(); got.records++ {
					changes.Add(s.Record())
					s.Record().Outcome()
					if r := s.Record(); r.End <= r.Start || r.Start < xlogtest.SegmentSize {
						t.Fatalf("a record from %v to %v", r.Start, r.End)
					}
				}
			}
			got.changes, got.end = uint64(len(changes.Encode())), uint64(s.End())
			return got
		}
		if a, b := scan(int(piece)+1), scan(len(data)+1); a != b {
			t.Errorf("in pieces of %d: %+v, whole: %+v", piece, a, b)
		}
	})
}

// TestScannerFindsDamage: whichever byte of WAL is changed, the scanner stops at it, or the byte is insignificant
// (padding).
func TestScannerFindsDamage(t *testing.T) {
	t.Parallel()
	whole := builtWAL()
	end := whole.Pos()
	scan := func(data []byte) xlog.LSN {
		s := xlog.NewScanner(xlog.ScannerConfig{SegmentSize: xlogtest.SegmentSize, Timeline: 1, System: xlogtest.System}, xlogtest.SegmentSize)
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
	for i := range min(len(data), 3*xlog.PageSize) {
		data[i] ^= 0x40
		if scan(data) == end {
			missed++
		}
		data[i] ^= 0x40
	}
	// Padding after records and in page headers.
	if missed > 150 {
		t.Errorf("%d of %d flipped bytes were not found", missed, 3*xlog.PageSize)
	}
}

// TestScannerOverwritten: the part of a record that a crash cut off is void.
func TestScannerOverwritten(t *testing.T) {
	t.Parallel()
	b := &xlogtest.Builder{Start: xlogtest.SegmentSize}
	b.Commit(1)
	before, prev := b.Pos(), b.Prev
	b.Record(21, 0, xlogtest.MainData(bytes.Repeat([]byte{7}, 16384)))
	data := bytes.Clone(b.Bytes()[:xlog.PageSize])
	next := &xlogtest.Builder{Start: xlogtest.SegmentSize + xlog.PageSize, Prev: prev}
	next.Commit(2)
	next.Bytes()[2] |= 0x08 // XLP_FIRST_IS_OVERWRITE_CONTRECORD
	s := xlog.NewScanner(xlog.ScannerConfig{SegmentSize: xlogtest.SegmentSize, Timeline: 1}, xlogtest.SegmentSize)
	s.Feed(append(data, next.Bytes()...))
	var starts []xlog.LSN
	for s.Next() {
		starts = append(starts, s.Record().Start)
	}
	if s.Err() != nil || len(starts) != 2 || starts[0] >= before || starts[1] != xlogtest.SegmentSize+xlog.PageSize+24 {
		t.Errorf("records at %v: %v", starts, s.Err())
	}
}
