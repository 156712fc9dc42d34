package wal

import (
	"errors"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
)

// A commit counts from the position on, in whichever segment it is; other records do not.
func TestCommittedSince(t *testing.T) {
	t.Parallel()
	b := &xlogtest.Builder{Start: smallSegment}
	b.Commit(1e6)
	after := b.Pos()
	fill := func(limit int) {
		for b.Len() < limit {
			b.Record(21, 0, xlogtest.MainData(make([]byte, 4000)))
		}
	}
	expect := func(from xlog.LSN, want bool) {
		t.Helper()
		if got, end, err := store(t, b).CommittedSince(t.Context(), 1, 1, from); err != nil || got != want || end != b.Pos() {
			t.Errorf("since %v of %v: %v up to %v, %v, want %v", from, b.Pos(), got, end, err, want)
		}
	}
	fill(smallSegment / 2)
	expect(b.Start, true)
	expect(after, false)
	fill(2*smallSegment + smallSegment/2) // beyond a full segment
	expect(after, false)
	late := b.Pos()
	b.Commit(2e6)
	b.Record(21, 0, xlogtest.MainData([]byte("x")))
	expect(after, true)
	expect(late, true)
	expect(b.Pos(), false)
	if _, _, err := store(t, b).CommittedSince(t.Context(), 1, 1, b.Pos()+8*smallSegment); !errors.Is(err, ErrGap) {
		t.Errorf("a position beyond the archive: %v", err)
	}
}
