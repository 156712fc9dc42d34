package wal

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
	"holdfast/internal/durable/faultfs"
)

// TestResolveTimes: timestamps are out of order, and clocks are set.
func TestResolveTimes(t *testing.T) {
	t.Parallel()
	second := func(s float64) time.Time { return xlog.FromTimestamp(int64(s * 1e6)) }
	// 20 comes before 21 and 22 in time order only; from 40 on the clock is 200 s ahead, until it is set back at 60.
	stamps := map[int]int64{20: 21, 21: 22, 22: 20}
	for n := 40; n < 60; n++ {
		stamps[n] = int64(n) + 200
	}
	b := longWAL(3, stamps)
	a := store(t, b)
	for _, tt := range []struct {
		target float64
		commit float64 // the timestamp of the last commit that is there
	}{
		{10, 10},
		{10.5, 10},
		{20.5, 19}, // 20 returned after 21
		{21.5, 21},
		{22.5, 22}, // though 20 comes after it
		{23, 23},
		{45, 39}, // the clock did not show 45 before it had shown 240
		{62, 62}, // in the second pass
		{80, 80},
	} {
		r, err := a.Resolve(t.Context(), Target{Generation: 1, Since: b.Start, Time: second(tt.target)})
		if err != nil {
			t.Errorf("%v: %v", tt.target, err)
			continue
		}
		if !r.Commit.Equal(second(tt.commit)) || r.Limit.Start < r.Last.Start {
			t.Errorf("%v: %+v, want the commit stamped %v", tt.target, r, tt.commit)
		}
		if again, err := a.Resolve(t.Context(), Target{Generation: 1, Since: b.Start, Time: r.Commit}); err != nil || again != r {
			t.Errorf("%v: its commit's time means %+v (%v), not %+v", tt.target, again, err, r)
		}
	}
	_, err := a.Resolve(t.Context(), Target{Generation: 1, Since: b.Start, Time: second(1e6)})
	if outside := new(OutsideError); !errors.As(err, &outside) || outside.LatestLSN != b.Pos() {
		t.Errorf("a target in the future: %v", err)
	}
	if r, err := a.Resolve(t.Context(), Target{Generation: 1, Since: b.Start, Time: second(1e6), Idle: second(2e6)}); err != nil || r.Limit.End != b.Pos() {
		t.Errorf("a target in an idle time: %+v, %v", r, err)
	}
}

// TestResolveBeforeAGap: what comes before a segment that is missing, or that ends too early, can be restored to its end.
func TestResolveBeforeAGap(t *testing.T) {
	t.Parallel()
	b := longWAL(6, nil)
	for what, lack := range map[string]func(segments map[segmentKey]*segment, key segmentKey) (end xlog.LSN){
		"missing": func(segments map[segmentKey]*segment, key segmentKey) xlog.LSN {
			delete(segments, key)
			return xlog.LSN(key.n * smallSegment)
		},
		"too short": func(segments map[segmentKey]*segment, key segmentKey) xlog.LSN {
			short := *segments[key]
			short.end = xlog.LSN(key.n*smallSegment + smallSegment/2)
			segments[key] = &short
			return short.end
		},
	} {
		a := store(t, b)
		end := lack(a.branches[1].segments, segmentKey{1, uint64(b.Start)/smallSegment + 3})
		_, err := a.Resolve(t.Context(), Target{Generation: 1, Since: b.Start, LSN: b.Pos()})
		if !errors.Is(err, ErrGap) {
			t.Errorf("%s: all of it: %v", what, err)
		}
		window, err := a.Window(t.Context(), 1, 0, b.Start)
		if err != nil || window.To != end || window.LastCommit.IsZero() {
			t.Errorf("%s: the window is %+v, want its end at %v: %v", what, window, end, err)
		}
		r, err := a.Resolve(t.Context(), Target{Generation: 1, Since: b.Start, LSN: window.To})
		if err != nil || r.Last.End > end || r.Last.End < end-100_000 {
			t.Errorf("%s: up to %v: %+v, %v", what, end, r, err)
		}
		if err := a.Covers(1, 1, b.Start, r.Last.End); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestResolveAtAFork: of a generation that lacks the segment in which it forked, or its end, the parent has the WAL up to the
// fork, and no more of it counts.
func TestResolveAtAFork(t *testing.T) {
	t.Parallel()
	b := longWAL(6, nil)
	n := uint64(b.Start)/smallSegment + 2
	for what, own := range map[string]*segment{
		"nothing":     nil,
		"later WAL":   {segmentKey: segmentKey{2, n + 1}, compressed: true, end: xlog.LSN((n + 2) * smallSegment)},
		"a beginning": {segmentKey: segmentKey{2, n}, end: xlog.LSN(n*smallSegment + smallSegment/4)},
	} {
		a := store(t, b)
		before, err := a.Resolve(t.Context(), Target{Generation: 1, Since: b.Start, LSN: xlog.LSN(n*smallSegment + smallSegment/2)})
		if err != nil {
			t.Fatal(err)
		}
		fork := before.Last.End
		child := newBranch(2, "", Generation{Parent: &Parent{Generation: 1, Timeline: 1, Fork: fork}, SegmentSize: smallSegment, Timeline: 2})
		later := own != nil && own.n > n
		if own != nil {
			child.segments[own.segmentKey] = own
		}
		a.branches[2] = child
		window, err := a.Window(t.Context(), 2, 0, b.Start)
		if want, outcome := lastCommitBefore(t, a, fork); err != nil || outcome != nil || window.To != fork || !window.LastCommit.Equal(want) {
			t.Errorf("it has %s: the window is %+v, want its end at %v with the commit of %v: %v, %v", what, window, fork, want, err, outcome)
		}
		_, err = a.Resolve(t.Context(), Target{Generation: 2, Since: b.Start, LSN: ^xlog.LSN(0)})
		if outside := new(OutsideError); later && !errors.Is(err, ErrGap) || !later && (!errors.As(err, &outside) || outside.LatestLSN != fork) {
			t.Errorf("it has %s: all of it: %v", what, err)
		}
		r, err := a.Resolve(t.Context(), Target{Generation: 2, Since: b.Start, LSN: fork})
		if err != nil || r.Last.End != fork || r.Last.Generation != 1 {
			t.Errorf("it has %s: the fork: %+v, %v", what, r, err)
		}
		if later {
			continue
		}
		r, err = a.Resolve(t.Context(), Target{Generation: 2, Since: b.Start, Time: window.LastCommit.Add(time.Minute), Idle: window.LastCommit.Add(time.Hour)})
		if err != nil || !r.Commit.Equal(window.LastCommit) || r.Limit.End != fork {
			t.Errorf("it has %s: a time after the last commit: %+v, %v", what, r, err)
		}
	}
}

// lastCommitBefore returns the time of the last commit of generation 1 that ends at a position at the latest.
func lastCommitBefore(t *testing.T, a *Archive, end xlog.LSN) (last time.Time, err error) {
	t.Helper()
	spans, err := a.spans(1, 1)
	if err != nil {
		return last, err
	}
	err = a.scanPath(t.Context(), spans, smallSegment, end, nil, func(r *xlog.Record) error {
		if outcome, at := r.Outcome(); outcome.Shows() && r.End <= end {
			last = at
		}
		return nil
	})
	return last, err
}

// TestWindowOnFullDisk: a summary that is lost and cannot be stored again is made each time.
func TestWindowOnFullDisk(t *testing.T) {
	t.Parallel()
	b := longWAL(4, nil)
	a := store(t, b)
	want, err := a.Window(t.Context(), 1, 1, b.Start)
	if err != nil {
		t.Fatal(err)
	}
	summaries, err := filepath.Glob(filepath.Join(a.branches[1].dir, "*"+summarySuffix))
	if err != nil || len(summaries) == 0 {
		t.Fatal(summaries, err)
	}
	for _, path := range summaries {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range a.branches[1].segments {
		s.summary = nil
	}
	a.fsys = &faultfs.FS{Err: syscall.ENOSPC, Hit: func(int, string, string) bool { return true }}
	if got, err := a.Window(t.Context(), 1, 1, b.Start); err != nil || got != want {
		t.Errorf("on a full disk: %+v, %v, want %+v", got, err, want)
	}
}

// TestResolveBehindASwitch: a backup ends with a segment switch, followed by a commit. Times between the two can be
// restored.
func TestResolveBehindASwitch(t *testing.T) {
	t.Parallel()
	b := longWAL(1, nil)
	b.Commit(1e12)
	b.Record(xlog.ResourceXLOG, xlogtest.InfoSwitch, nil)
	b.Write(make([]byte, smallSegment-uint64(b.Pos())%smallSegment))
	stop := b.Pos()
	b.Commit(2e12)
	a := store(t, b)
	r, err := a.Resolve(t.Context(), Target{Generation: 1, Since: b.Start, Time: xlog.FromTimestamp(15e11)})
	if err != nil {
		t.Fatal(err)
	}
	if reach, err := r.Reach(stop); err != nil || reach.End != stop || !r.Commit.Equal(xlog.FromTimestamp(1e12)) {
		t.Errorf("%+v: %+v, %v", r, reach, err)
	}
}

// TestClockSetBack: the restorable time follows the server's clock, even if it is set back.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(1e9, 0).Add(time.Duration(s) * time.Second) }
	r := &Receiver{writer: &Writer{pos: 100}}
	l := &r.tracker
	f := &follower{r: r}
	hear := func(second int) { f.updateRestorable(walPosition{at: at(second), flushed: 100}) }
	for second := range 5 {
		hear(second)
	}
	if got := l.get().RestorableTo; !got.Equal(at(3)) {
		t.Errorf("restorable to %v, not %v", got, at(3))
	}
	for second := range 3 {
		hear(second - 3600)
	}
	if got := l.get().RestorableTo; !got.Equal(at(-3599)) {
		t.Errorf("an hour back: restorable to %v, not %v", got, at(-3599))
	}
	l.durable(1, 200, []time.Time{at(-3590), at(-3590).Add(-time.Millisecond)}, at(-3590))
	if got := l.get().RestorableTo; !got.Equal(at(-3590)) {
		t.Errorf("commits that overtook each other: restorable to %v, not %v", got, at(-3590))
	}
}
