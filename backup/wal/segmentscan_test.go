package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
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
