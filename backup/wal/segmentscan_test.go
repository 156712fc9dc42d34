package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
)

// changedFile is the file whose pages changingWAL changes.
const changedFile = "base/5/16384"

// changingWAL returns WAL of a few segments, each record of which changes another page, starting at 0. One that
// spans a whole segment begins in the third.
func changingWAL(segments int) *xlogtest.Builder {
	b := &xlogtest.Builder{Start: smallSegment}
	for n := uint32(0); b.Len() < segments*smallSegment-smallSegment/2; n++ {
		size := 30_000
		if b.Prev < 4*smallSegment && b.Pos()+xlog.LSN(size) > 4*smallSegment {
			size = 3 * smallSegment / 2
		}
		body := []byte{0, 0, 0, 0} // the first block: no data of its own
		for _, v := range []uint32{1663, 5, 16384, n} {
			body = binary.LittleEndian.AppendUint32(body, v)
		}
		b.Record(10, 0, append(body, xlogtest.MainData(bytes.Repeat([]byte{byte(n)}, size))...))
	}
	return b
}

func summaryPath(a *Archive, n uint64) string {
	return filepath.Join(a.dir, "1", xlog.SegmentName(1, n, smallSegment)+summarySuffix)
}

// changedPages returns the pages that b changes according to the archive.
func changedPages(t *testing.T, a *Archive, b *xlogtest.Builder) []uint32 {
	t.Helper()
	changes, err := a.ChangedPages(t.Context(), 1, 1, b.Start, b.Pos())
	if err != nil {
		t.Fatal(err)
	}
	pages, known := changes.Pages(changedFile)
	if !known || len(pages) < 100 || int(pages[len(pages)-1]) != len(pages)-1 {
		t.Errorf("%d pages are not all there are, known: %t", len(pages), known)
	}
	return pages
}

// TestSummariesMadeAgain: whichever summaries are missing, and whichever is requested first, they have the changes
// of records that continue across segments.
func TestSummariesMadeAgain(t *testing.T) {
	t.Parallel()
	b := changingWAL(8)
	a := store(t, b)
	want := changedPages(t, a, b)
	for _, missing := range [][]uint64{{7}, {6, 7}, {4, 5}, {3, 4, 5}, {5, 6}, {1, 2, 3, 4, 5, 6, 7}} {
		for _, first := range missing {
			a.Close()
			for _, n := range missing {
				if err := os.Remove(summaryPath(a, n)); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if a, err = Open(a.dir, Options{}); err != nil { // which reads the last ones
				t.Fatal(err)
			}
			if _, err := a.summaryOf(a.branches[1], segmentKey{1, first}); err != nil {
				t.Fatal(err)
			}
			if got := changedPages(t, a, b); !slices.Equal(got, want) {
				t.Errorf("without the summaries %d, asked for %d first: %d pages, want %d", missing, first, len(got), len(want))
			}
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTakenOverChanges: a writer that continues in the middle of a record that has filled a segment has its changes.
func TestTakenOverChanges(t *testing.T) {
	t.Parallel()
	b := changingWAL(8)
	want := changedPages(t, store(t, b), b)
	dir := filepath.Join(t.TempDir(), "wal")
	part := &xlogtest.Builder{Start: b.Start}
	part.Write(b.Bytes()[:4*smallSegment+smallSegment/4])
	for _, b := range []*xlogtest.Builder{part, b} {
		a, w, err := openWriter(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := appendAll(w, b, func(xlog.LSN) {}); err != nil {
			t.Error(err)
		}
		if err := errors.Join(w.Close(), a.Close()); err != nil {
			t.Error(err)
		}
	}
	a, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if got := changedPages(t, a, b); !slices.Equal(got, want) {
		t.Errorf("%d pages, want %d", len(got), len(want))
	}
}

// TestBeginningDamaged: a summary without the record that continues into its segment, because the previous segment
// is damaged, says that everything changed; at the archive's beginning it does not.
func TestBeginningDamaged(t *testing.T) {
	t.Parallel()
	a := store(t, changingWAL(8))
	before := filepath.Join(a.dir, "1", xlog.SegmentName(1, 6, smallSegment)+compressedSuffix)
	data, err := os.ReadFile(before)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := errors.Join(os.WriteFile(before, data, 0o600), os.Remove(summaryPath(a, 7)), os.Remove(summaryPath(a, 1))); err != nil {
		t.Fatal(err)
	}
	for n, everything := range map[uint64]bool{7: true, 1: false} {
		sum, err := a.loadSummary(a.branches[1], a.segment(a.branches[1], segmentKey{1, n}), true)
		if err != nil || sum.changes.Unknown() != everything {
			t.Errorf("segment %d: everything changed: %t, %v; want %t", n, err == nil && sum.changes.Unknown(), err, everything)
		}
	}
}

// forkedStraddling archives WAL whose second commit, of second 20, continues into the segment in which generation 2 forks.
func forkedStraddling(t *testing.T) (a *Archive, fork xlog.LSN) {
	t.Helper()
	b := &xlogtest.Builder{Start: smallSegment}
	filler := func(size int) { b.Record(21, 0, xlogtest.MainData(bytes.Repeat([]byte{1}, size))) }
	b.Commit(10e6)
	for b.Pos() < 2*smallSegment-9000 {
		filler(3000)
	}
	for b.Pos() < 2*smallSegment-200 {
		filler(40)
	}
	b.Record(xlog.ResourceXact, 0, xlogtest.MainData(append(binary.LittleEndian.AppendUint64(nil, 20e6), make([]byte, 1200)...)))
	if fork = b.Pos(); fork <= 2*smallSegment {
		t.Fatalf("the commit ends at %v, before the segment", fork)
	}
	parent := &xlogtest.Builder{Start: b.Start}
	filler(3000)
	parent.Write(b.Bytes())
	for b.Pos() < 4*smallSegment+smallSegment/2 {
		filler(3000)
	}
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), nil)
	if err == nil {
		err = errors.Join(appendAll(w, parent, func(xlog.LSN) {}), w.Close(), a.Create(2, &Parent{Generation: 1, Timeline: 1, Fork: fork}))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if w, err = a.Writer(2); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	err = w.Identify(xlogtest.System, smallSegment, 1)
	if err == nil {
		_, err = w.Start(1, fork)
	}
	if err == nil {
		err = w.Append(2*smallSegment, b.Bytes()[2*smallSegment-b.Start:])
	}
	if err == nil {
		_, _, err = w.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.compressor.wait()
	return a, fork
}

// expectStraddling expects that a time after the commit of second 20 leads to it.
func expectStraddling(t *testing.T, a *Archive, fork xlog.LSN) {
	t.Helper()
	r, err := a.Resolve(t.Context(), Target{Generation: 2, Since: smallSegment, Time: xlog.FromTimestamp(50e6), Idle: xlog.FromTimestamp(200e6)})
	if err != nil || r.Last.End != fork {
		t.Errorf("the last commit ends at %v, want %v: %v", r.Last.End, fork, err)
	}
	if w, err := a.Window(t.Context(), 2, 0, smallSegment); err != nil || !w.LastCommit.Equal(xlog.FromTimestamp(20e6)) {
		t.Errorf("the window is %+v, want its last commit at second 20: %v", w, err)
	}
}

// TestCommitIntoAFork: the summary of the segment in which a generation forked has the commit that continues into it.
// Summaries of earlier versions, which lack it, are made again, and others are not.
func TestCommitIntoAFork(t *testing.T) {
	t.Parallel()
	a, fork := forkedStraddling(t)
	expectStraddling(t, a, fork)
	dir := a.dir
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	path := func(n uint64) string {
		return filepath.Join(dir, "2", xlog.SegmentName(1, n, smallSegment)+summarySuffix)
	}
	for _, n := range []uint64{2, 3} {
		data, err := os.ReadFile(path(n))
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint32(data[8:], 2)
		binary.LittleEndian.PutUint64(data[16+8*4:], 0) // no commits
		binary.LittleEndian.PutUint32(data[summaryHeader-4:], crc32.Checksum(data[:summaryHeader-4], castagnoli))
		if err := os.WriteFile(path(n), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	expectStraddling(t, a, fork)
	for n, want := range map[uint64]uint32{2: summaryFormat, 3: 2} {
		if sum, err := readSummary(path(n), segmentKey{1, n}, a.codec, false); err != nil || sum.format != want {
			t.Errorf("the summary of segment %d has the format %+v, want %d: %v", n, sum, want, err)
		}
	}
}
