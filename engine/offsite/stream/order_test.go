package stream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/objectstore"
	"holdfast/internal/testenv"
)

// TestAcknowledgedInOrder: a log object that is stored before the one before it is not
// acknowledged, and no reader sees it.
func TestAcknowledgedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: directory(t)}
		r := repository(t, store, ring(t))
		s := &script{owner: "a"}
		w := open(t, claim(t, r, "one", false), Options{}, s)
		first := w.Epoch().logKey(1)
		store.set(func(_ int, act, key string) fault {
			if act == "create" && key == first {
				return fails
			}
			return none
		})
		for range 3 {
			s.add(w, 100)
			time.Sleep(2 * time.Second)
		}
		if n := w.Status().Counts.LogObjects; n != 2 || s.acknowledged() != 0 {
			t.Errorf("%d objects are stored, %d frames acknowledged", n, s.acknowledged())
		}
		if lag := w.Status().Lag; lag < 5*time.Second {
			t.Errorf("the lag is %s", lag)
		}
		if seen := texts(t, r, nil, time.Time{}); len(seen) > 0 {
			t.Errorf("a reader sees %v", seen)
		}
		store.set(nil)
		flush(t, w)
		if s.acknowledged() != 3 {
			t.Errorf("%d of 3 are acknowledged", s.acknowledged())
		}
		kill(w)
	})
}

// TestAWindowIsInFlight: no log object is stored far ahead of one that is not, and so a
// reader knows an object that was lost from one that was never stored.
func TestAWindowIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: directory(t)}
		r := repository(t, store, ring(t))
		s := &script{owner: "a"}
		w := open(t, claim(t, r, "one", false), Options{}, s)
		late := w.Epoch().logKey(3)
		store.set(func(_ int, act, key string) fault {
			if act == "create" && key == late {
				return fails
			}
			return none
		})
		for range 60 {
			s.add(w, 100)
			time.Sleep(2 * time.Second)
		}
		if n := w.Status().Counts.LogObjects; n != 5 {
			t.Errorf("%d objects are stored while the third is not", n)
		}
		kill(w)
		store.set(nil)
		if h := claim(t, r, "one", false); h.Tip().Cut.Log != 2 || len(h.Ignored) > 0 {
			t.Errorf("the cut is %+v, ignored is %v", h.Tip().Cut, h.Ignored)
		}
	})
}

func TestLostLogObjectIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStored(t)
		src := &script{owner: "a"}
		w := open(t, claim(t, s.Repository, "one", false), Options{}, src)
		for range 30 {
			src.add(w, 100)
			flush(t, w)
		}
		kill(w)
		s.remove(t, w.Epoch().logKey(3))
		h := claim(t, s.Repository, "one", false)
		if len(h.Ignored) != 1 || h.Ignored[0].Key != w.Epoch().logKey(3) {
			t.Errorf("ignored is %v", h.Ignored)
		}
	})
}

// TestCheckpointFollowsItsState: what happens while the state is collected may be part
// of it, so the log has it before the checkpoint is stored.
func TestCheckpointFollowsItsState(t *testing.T) {
	r := repository(t, directory(t), ring(t))
	s := &script{owner: "a"}
	w := open(t, claim(t, r, "one", false), Options{}, s)
	defer kill(w)
	s.add(w, 100)
	flush(t, w)
	p, err := w.Checkpoint(t.Context(), func(context.Context) ([]Entry, error) {
		s.add(w, 100)
		return nil, nil
	})
	if err != nil || s.acknowledged() != 2 || p.Through < 2 {
		t.Errorf("the checkpoint is through %d, %d frames are acknowledged, %v", p.Through, s.acknowledged(), err)
	}
	_, c := find(t, r, time.Time{})
	if c.Replay != 1 {
		t.Errorf("the log is replayed after %d", c.Replay)
	}
}

// TestReplayIsCounted: the status says how many bytes of frames follow the newest checkpoint, however well they are compressed.
func TestReplayIsCounted(t *testing.T) {
	r := repository(t, directory(t), ring(t))
	s := &script{owner: "a"}
	w := open(t, claim(t, r, "one", false), Options{}, s)
	defer kill(w)
	write := func() {
		for range 10 {
			s.add(w, 100_000)
		}
		flush(t, w)
	}
	write()
	write()
	before := w.Status()
	_, err := w.Checkpoint(t.Context(), func(context.Context) ([]Entry, error) {
		write()
		return nil, nil
	})
	after := w.Status()
	const written = 1_000_000
	if err != nil || before.Replay < 2*written || before.Counts.LogBytes > written || after.Replay < written || after.Replay > 2*written {
		t.Errorf("%d bytes are replayed before the checkpoint, stored in %d, and %d after it; %v", before.Replay, before.Counts.LogBytes, after.Replay, err)
	}
}

// TestLogWithoutItsEnd: a checkpoint whose log is not whole is not used.
func TestLogWithoutItsEnd(t *testing.T) {
	s := newStored(t)
	src := &script{owner: "a"}
	w := open(t, claim(t, s.Repository, "one", false), Options{}, src)
	first := checkpoint(t, w, nil)
	p, err := w.Checkpoint(t.Context(), func(context.Context) ([]Entry, error) {
		src.add(w, 100)
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	kill(w)
	s.remove(t, w.Epoch().logKey(p.Through))
	h, c := find(t, s.Repository, time.Time{})
	if c.Point != first || len(h.Ignored) != 1 {
		t.Errorf("%v is used, ignored is %v", c.Point, h.Ignored)
	}
	if cut := claim(t, s.Repository, "one", false).Tip().Cut; cut.Point != first {
		t.Errorf("the cut has the point %v", cut.Point)
	}
}

// TestPruneRemovesDeadBranches: what a machine wrote after it was replaced, and the
// epochs of claims that lost, go.
func TestPruneRemovesDeadBranches(t *testing.T) {
	s := newStored(t)
	src := &script{owner: "a"}
	old := open(t, claim(t, s.Repository, "old", false), Options{}, src)
	src.add(old, 100)
	checkpoint(t, old, nil)
	next := open(t, claim(t, s.Repository, "new", true), Options{})
	src.add(old, 100)
	flush(t, old)
	late := old.Epoch().logKey(2)
	stray := fmt.Sprintf("e/%s/log/%016x", Epoch{Number: 1, Nonce: "lost"}, 1)
	junk(t, s.store, stray, "lost")
	junk(t, s.store, "bid/00000001-lost", "lost")
	junk(t, s.store, "e/unknown", "of a later version")
	checkpoint(t, next, nil)
	kill(old)
	kill(next)
	makeOld(t, s.dir)
	plan, err := s.PlanPrune(t.Context(), time.Now(), time.Now().Add(-8*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(plan.Objects, " ")
	for _, key := range []string{late, stray, "bid/00000001-lost"} {
		if !strings.Contains(all, key) {
			t.Errorf("%s stays", key)
		}
	}
	if strings.Contains(all, "unknown") || strings.Contains(all, "epoch/") {
		t.Errorf("too much goes: %s", all)
	}
}

// makeOld makes all files of a directory old.
func makeOld(t *testing.T, dir string) {
	t.Helper()
	then := time.Now().Add(-100 * 24 * time.Hour)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = os.Chtimes(path, then, then)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMergedInOrderOfTime: after an outage too, no frame precedes an older one of another
// source, wherever a log object ends.
func TestMergedInOrderOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := repository(t, directory(t), ring(t))
		h := claim(t, r, "one", false)
		sources := []*script{{owner: "a"}, {owner: "b"}, {owner: "c"}}
		start := time.Now().Add(-time.Hour)
		w := open(t, h, Options{}, sources[0], sources[1], sources[2])
		synctest.Wait()
		for n := range 3000 {
			s := sources[n*n%7%3]
			s.frames = append(s.frames, Frame{
				Time: start.Add(time.Duration(n) * time.Millisecond),
				Body: WAL{Owner: s.owner, Generation: 1, Timeline: 1, From: uint64(len(s.frames)), Bytes: make([]byte, 5000)},
			})
		}
		w.Wake()
		flush(t, w)
		if n := w.Status().Counts.LogObjects; n < 3 {
			t.Errorf("%d log objects", n)
		}
		kill(w)
		var last time.Time
		read := 0
		h, err := r.History(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for f, err := range h.Frames(t.Context(), nil, time.Time{}) {
			if err != nil {
				t.Fatal(err)
			}
			if f.Time.Before(last) {
				t.Fatalf("frame %d is of %s, the one before of %s", read, f.Time, last)
			}
			last = f.Time
			read++
		}
		if read != 3000 {
			t.Errorf("%d of 3000 frames", read)
		}
	})
}

// namedScript is a script with a stream.
type namedScript struct {
	*script
	stream Stream
}

func (s namedScript) Stream() Stream { return s.stream }

// TestStreams: each stream has a lag of its own, until its changes are stored.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, claim(t, newStored(t).Repository, "one", false), Options{Interval: time.Minute})
		defer kill(w)
		prompt, late := Stream{Kind: "prompt"}, Stream{Kind: "late", Owner: "db"}
		a, b := &script{owner: "a"}, &script{owner: "b"}
		w.Add(namedScript{a, prompt})
		w.Add(namedScript{b, late})
		a.add(w, 10)
		flush(t, w)
		b.add(w, 1000)
		time.Sleep(10 * time.Second)
		st := w.Status()
		if got := st.Streams[prompt]; got.Lag != 0 || got.Backlog != 0 {
			t.Errorf("the stream that is stored: %+v", got)
		}
		if got := st.Streams[late]; got.Lag < 10*time.Second || got.Backlog < 1000 || st.Lag != got.Lag {
			t.Errorf("the stream that waits: %+v, all of it %s", got, st.Lag)
		}
		flush(t, w)
		if got := w.Status().Streams[late]; got.Lag != 0 || got.Backlog != 0 {
			t.Errorf("once it is stored: %+v", got)
		}
	})
}

// slowToRead is a source whose frames take long to be read.
type slowToRead struct {
	*script
	taken, release chan struct{}
}

// Next implements Source.
func (s slowToRead) Next(ctx context.Context, limit int, until time.Time) ([]Frame, error) {
	frames, err := s.script.Next(ctx, limit, until)
	if len(frames) > 0 {
		s.taken <- struct{}{}
		<-s.release
	}
	return frames, err
}

// TestWhatIsBeingCutIsNotStored: between its source and the log object that is sent, a change is still missing in the store.
func TestWhatIsBeingCutIsNotStored(t *testing.T) {
	t.Parallel()
	source := slowToRead{&script{owner: "slow"}, make(chan struct{}), make(chan struct{})}
	w := open(t, claim(t, repository(t, directory(t), ring(t)), "machine", false), Options{}, source)
	defer kill(w)
	source.add(w, 10)
	<-source.taken
	for range 3 {
		time.Sleep(time.Millisecond) // the lag is an age
		if status := w.Status(); status.Lag == 0 {
			t.Errorf("a change that is being read is not stored, and the status says %+v", status)
		}
	}
	close(source.release)
	flush(t, w)
	if status := w.Status(); status.Lag != 0 {
		t.Errorf("everything is stored, and the status says %+v", status)
	}
}

// busy is a source that something happens to right after it was asked what it has.
type busy struct {
	*script
	asked func()
}

// Waiting implements Source.
func (b busy) Waiting() Waiting {
	w := b.script.Waiting()
	b.asked()
	return w
}

// TestCauseBeforeEffect: what comes while the sources are asked one after the other is in the log in the order in which it came,
// whichever was asked first.
func TestCauseBeforeEffect(t *testing.T) {
	t.Parallel()
	for asked := range 12 { // how often one was before
		for _, causeFirst := range []bool{true, false} {
			r := repository(t, directory(t), ring(t))
			w := open(t, claim(t, r, "machine", false), Options{Interval: time.Millisecond})
			cause, effect := &script{owner: "cause"}, &script{owner: "effect"}
			var times atomic.Int64
			happen := func() {
				if times.Add(1) == int64(asked+1) {
					cause.add(w, 10)
					effect.add(w, 10)
				}
			}
			effect.add(w, 10) // which is read
			if causeFirst {
				w.Add(busy{cause, happen})
				w.Add(effect)
			} else {
				w.Add(busy{effect, happen})
				w.Add(cause)
			}
			testenv.Eventually(t, "the sources to be asked", func() bool { w.Wake(); return times.Load() > int64(asked) })
			flush(t, w)
			kill(w)
			var order []string
			h, err := r.History(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for f, err := range h.Frames(t.Context(), nil, time.Time{}) {
				if err != nil {
					t.Fatal(err)
				}
				order = append(order, f.Body.(WAL).Owner)
			}
			if want := []string{"effect", "cause", "effect"}; !slices.Equal(order, want) {
				t.Errorf("asked %d times before, the cause first: %v: the log has %v", asked, causeFirst, order)
			}
		}
	}
}

// TestPruneSparesARecovery: what a recovery to an earlier moment brings back remains until its machine has stored a point.
func TestPruneSparesARecovery(t *testing.T) {
	s := newStored(t)
	points, refs := twoPoints(t, s)
	recovery, err := s.Claim(t.Context(), time.Now(), ClaimOptions{Machine: "new", Token: "new", TakeOver: true, Recovers: points[0].Time})
	if err != nil {
		t.Fatal(err)
	}
	claim(t, s.Repository, "new", false) // the run that makes the first point
	makeOld(t, s.dir)
	since := points[1].Time.Add(1)
	plan, err := s.PlanPrune(t.Context(), time.Now(), since)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(slices.Concat(plan.Points, plan.Objects), " "); strings.Contains(all, points[0].key()) || strings.Contains(all, refs[0].partKey(0)) {
		t.Errorf("of what the recovery needs goes %s", all)
	}
	w := open(t, claim(t, s.Repository, "new", false), Options{})
	checkpoint(t, w, nil)
	kill(w)
	makeOld(t, s.dir)
	if plan, err = s.PlanPrune(t.Context(), time.Now(), since); err != nil || !slices.Contains(plan.Points, points[0].key()) {
		t.Errorf("after a point: %+v, %v", plan, err)
	}
	if got, err := s.readClaim(t.Context(), recovery.Tip().Epoch); err != nil || !got.Recovers.Equal(points[0].Time) {
		t.Errorf("the claim: %+v, %v", got, err)
	}
}

// TestClockBehind: a run whose clock is behind, as before the first synchronization, hides nothing of what was stored before
// it, and the log goes on.
func TestClockBehind(t *testing.T) {
	s := newStored(t)
	points, refs := twoPoints(t, s)
	var behind Point
	src := &script{owner: "b"}
	synctest.Test(t, func(t *testing.T) { // where it is the year 2000
		w := open(t, claim(t, s.Repository, "one", false), Options{}, src)
		src.add(w, 100)
		checkpoint(t, w, nil)
		src.add(w, 100)
		behind = checkpoint(t, w, nil)
		kill(w)
	})
	if !behind.Time.After(points[1].Time) {
		t.Errorf("the point of the run is of %s, the one before it of %s", behind.Time, points[1].Time)
	}
	for want, at := range map[Point]time.Time{points[0]: points[1].Time.Add(-1), points[1]: points[1].Time, behind: time.Now()} {
		_, c := find(t, s.Repository, at)
		if c.Point != want {
			t.Errorf("at %s the point is %v, want %v", at, c.Point, want)
		}
		if seen := texts(t, s.Repository, c, at); want != behind && seen["b"] != 0 {
			t.Errorf("at %s a reader sees %v", at, seen)
		}
	}
	makeOld(t, s.dir)
	plan, err := s.PlanPrune(t.Context(), time.Now(), points[0].Time)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs[:2] {
		if slices.Contains(plan.Objects, ref.partKey(0)) {
			t.Errorf("%s goes", ref.partKey(0))
		}
	}
	next := open(t, claim(t, s.Repository, "one", false), Options{})
	if p := checkpoint(t, next, nil); time.Since(p.Time).Abs() > time.Minute {
		t.Errorf("with the clock set right a point is of %s", p.Time)
	}
	kill(next)
}

// TestClockFarAhead: a clock that was far ahead once is not followed.
func TestClockFarAhead(t *testing.T) {
	r := repository(t, directory(t), ring(t))
	src := &script{owner: "a", frames: []Frame{{Time: time.Now().AddDate(73, 0, 0), Body: WAL{Owner: "a", Generation: 1, Timeline: 1, Bytes: []byte("a 0 ")}}}}
	w := open(t, claim(t, r, "one", false), Options{IsPlausible: func(at time.Time) bool { return at.Before(time.Now().Add(time.Hour)) }}, src)
	if p := checkpoint(t, w, nil); time.Since(p.Time).Abs() > time.Minute {
		t.Errorf("a point is of %s", p.Time)
	}
	kill(w)
}

// TestPruneSparesAFileUnderWay: of a file that takes longer than the retention to store, the first parts remain. So does what
// the newest epoch has stored last, whatever its time: a file server may have had a wrong one.
func TestPruneSparesAFileUnderWay(t *testing.T) {
	s := newStored(t)
	points, _ := twoPoints(t, s)
	e := points[0].Epoch
	w := open(t, claim(t, s.Repository, "one", false), Options{}, &script{owner: "a"})
	defer kill(w)
	unused, err := w.storeBytes(t.Context(), []byte("unused"))
	if err != nil {
		t.Fatal(err)
	}
	used, err := w.storeBytes(t.Context(), []byte("used"))
	if err != nil {
		t.Fatal(err)
	}
	checkpoint(t, w, []Entry{{Kind: "file", Ref: used}})
	last, err := w.storeBytes(t.Context(), []byte("last"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{e.partKey(98, 0), e.partKey(98, 1), e.partKey(99, 0), e.partKey(99, 1)} {
		junk(t, s.store, key, "part")
	}
	makeOld(t, s.dir)
	if err := os.Chtimes(s.path(e.partKey(99, 1)), time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	plan, err := s.PlanPrune(t.Context(), time.Now(), points[0].Time)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{
		e.partKey(98, 0): true, e.partKey(98, 1): true, e.partKey(99, 0): false, e.partKey(99, 1): false,
		unused.partKey(0): true, used.partKey(0): false, last.partKey(0): false,
	} {
		if got := slices.Contains(plan.Objects, key); got != want {
			t.Errorf("%s goes: %v", key, got)
		}
	}
}

// skewed is a store whose clock is not that of this machine.
type skewed struct {
	objectstore.Store
	ahead time.Duration
}

func (s skewed) ClockSkew(context.Context) (time.Duration, error) { return s.ahead, nil }

// TestPruneWithAWrongClock: times of a wrong clock say nothing about what is old.
func TestPruneWithAWrongClock(t *testing.T) {
	s := newStored(t)
	points, _ := twoPoints(t, s)
	makeOld(t, s.dir)
	for ahead, refused := range map[time.Duration]bool{0: false, MaxSkew: false, -MaxSkew: false, MaxSkew + time.Second: true, -10 * 365 * 24 * time.Hour: true} {
		r := repository(t, skewed{s.store, ahead}, s.keys)
		plan, err := r.PlanPrune(t.Context(), time.Now(), points[1].Time.Add(1))
		if refused != errors.Is(err, objectstore.ErrClock) || refused != (plan == nil) {
			t.Errorf("%s ahead: %+v, %v", ahead, plan, err)
		}
	}
}
