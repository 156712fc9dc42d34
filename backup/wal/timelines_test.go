package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
)

// story is a database that is restored to its past several times.
type story struct {
	t       *testing.T
	bin     binaries.Set
	archive *Archive
	backup  baseBackup
}

// step commits a name, waits until it is archived, and returns a time between this step and the next.
func (s story) step(c *cluster, r *Receiver, name string) time.Time {
	s.t.Helper()
	c.do("insert into steps values ('" + name + "')")
	at := time.Now()
	server, err := identify(s.t.Context(), c.Connect())
	if err != nil {
		s.t.Fatal(err)
	}
	r.waitFor(s.t, server.timeline, server.flushed)
	return at
}

// goBack restores to a target and continues from there as a new generation.
func (s story) goBack(target Target, generation int) (*cluster, *Receiver) {
	s.t.Helper()
	c, reached := restoreTo(s.t, s.archive, s.bin, s.backup, target)
	// While it is paused, so that no WAL of the new timeline is missed.
	if _, err := ensureSlot(s.t.Context(), c.Connect(), "holdfast"); err != nil {
		s.t.Fatal(err)
	}
	fork := c.lsn("select pg_last_wal_replay_lsn()::text")
	parent := &Parent{Generation: reached.Generation, Timeline: reached.Timeline, Fork: fork}
	if err := s.archive.Create(generation, parent); err != nil {
		s.t.Fatal(err)
	}
	c.promote()
	r := receive(s.t, c, s.archive, generation)
	r.waitFor(s.t, parent.Timeline+1, c.flushed())
	return c, r
}

// expect restores to a target and checks that it has these steps.
func (s story) expect(target Target, generation int, timeline uint32, steps string) {
	s.t.Helper()
	c, reached := restoreTo(s.t, s.archive, s.bin, s.backup, target)
	defer c.Stop()
	got := c.ask("select coalesce(string_agg(name, ' ' order by name), '') from steps")
	if got != steps || reached.Generation != generation || reached.Timeline != timeline {
		s.t.Errorf("%+v leads to %q on timeline %d of generation %d, want %q on %d of %d",
			target, got, reached.Timeline, reached.Generation, steps, timeline, generation)
	}
}

// TestTimelines restores to the past, from there again, to before a fork, forward on the old timeline, and twice
// from one point.
func TestTimelines(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, bin binaries.Set) {
		c := newCluster(t, bin, smallSegment)
		s := story{t: t, bin: bin, archive: openArchive(t, filepath.Join(t.TempDir(), "wal"))}
		tap := s.archive.Tap(nothingSent, func() {})
		defer tap.Close()
		r := receive(t, c, s.archive, 1)
		c.do("create table steps (name text)")
		r.waitFor(t, 1, c.flushed())
		s.backup = takeBackup(t, c)
		a := s.step(c, r, "a")
		b := s.step(c, r, "b")
		s.step(c, r, "c")
		two, r2 := s.goBack(Target{Generation: 1, Time: b}, 2)
		d := s.step(two, r2, "d2")
		two.do("select pg_switch_wal()", "insert into steps select 'x' from generate_series(1, 30000)", "delete from steps where name = 'x'")
		s.step(two, r2, "e2")
		three, r3 := s.goBack(Target{Generation: 2, Time: d}, 3)
		f := s.step(three, r3, "f3")
		s.step(three, r3, "g3")
		four, r4 := s.goBack(Target{Generation: 1, Time: a}, 4) // timeline 2, again
		h := s.step(four, r4, "h4")
		s.step(four, r4, "i4")
		late := s.step(c, r, "j") // the first one continues, as after an undo
		s.step(c, r, "k")

		s.expect(Target{Generation: 3, Time: f}, 3, 3, "a b d2 f3")
		s.expect(Target{Generation: 3, Time: d}, 2, 2, "a b d2")
		s.expect(Target{Generation: 3, Time: a}, 1, 1, "a")
		s.expect(Target{Generation: 4, Time: h}, 4, 2, "a h4")
		s.expect(Target{Generation: 1, Time: late}, 1, 1, "a b c j")

		for _, r := range []*Receiver{r, r2, r3, r4} {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		copied := s
		copied.archive = copyOf(t, tap)
		copied.expect(Target{Generation: 3, Time: f}, 3, 3, "a b d2 f3")
		copied.expect(Target{Generation: 4, Time: h}, 4, 2, "a h4")
		copied.expect(Target{Generation: 1, Time: late}, 1, 1, "a b c j")
		s.prune()
	})
}

// prune keeps what the backup leads to and, from a later position, less.
func (s story) prune() {
	t, a := s.t, s.archive
	end := map[int]xlog.LSN{}
	for n := 1; n <= 4; n++ {
		a.mu.Lock()
		b := a.branches[n]
		end[n] = b.end(b.timelines()[0])
		a.mu.Unlock()
	}
	if _, err := a.Prune([]Keep{{1, s.backup.start}}); err != nil {
		t.Fatal(err)
	}
	for n, timeline := range map[int]uint32{1: 1, 2: 2, 3: 3, 4: 2} {
		if err := a.Check(t.Context(), n, timeline, s.backup.start, end[n], nil); err != nil {
			t.Errorf("what the backup needs in generation %d was removed: %v", n, err)
		}
	}
	if missing := a.Missing([]Keep{{1, s.backup.start}}); len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
	// A later backup of the second leads to it and the third.
	later := []Keep{{2, end[2] - 1}}
	freed, err := a.Prune(later)
	if err != nil || freed == 0 {
		t.Errorf("freed %d, %v", freed, err)
	}
	if missing := a.Missing(later); len(missing) > 0 {
		t.Errorf("missing for a later backup: %v", missing)
	}
	if missing := a.Missing([]Keep{{1, s.backup.start}}); len(missing) == 0 {
		t.Error("nothing is missing for the first backup")
	}
	if err := a.Covers(1, 1, s.backup.start, end[1]); !errors.Is(err, ErrGap) {
		t.Errorf("what nothing leads to is still there: %v", err)
	}
	if _, err := a.Prune(nil); err == nil {
		t.Error("pruned everything")
	}
}

// TestPromotedServer: a receiver follows when its server changes its timeline.
func TestPromotedServer(t *testing.T) {
	t.Parallel()
	bin := postgrestest.Binaries(t)
	c := newCluster(t, bin, smallSegment)
	s := story{t: t, bin: bin, archive: openArchive(t, filepath.Join(t.TempDir(), "wal"))}
	r := receive(t, c, s.archive, 1)
	c.do("create table steps (name text)")
	r.waitFor(t, 1, c.flushed())
	s.backup = takeBackup(t, c)
	a := s.step(c, r, "a")
	for timeline := uint32(2); timeline <= 3; timeline++ {
		c.Stop()
		if err := os.WriteFile(filepath.Join(c.Dir, "standby.signal"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.Start()
		c.promote()
		r.waitFor(t, timeline, c.flushed())
		c.do(fmt.Sprintf("insert into steps values ('b%d')", timeline), "select pg_switch_wal()", fmt.Sprintf("insert into steps values ('c%d')", timeline))
		r.waitFor(t, timeline, c.flushed())
	}
	end := c.flushed()
	if err := s.archive.Check(t.Context(), 1, 3, s.backup.start, end, nil); err != nil {
		t.Error(err)
	}
	s.expect(Target{Generation: 1, LSN: end}, 1, 3, "a b2 b3 c2 c3")
	s.expect(Target{Generation: 1, Time: a}, 1, 1, "a")
}

// TestDrain: WAL that a server wrote while no receiver ran, up to its shutdown, is read from its files.
func TestDrain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment, "max_wal_size=100MB")
	a, from := receiveOnce(t, c)
	for n := range 20 { // the last record can be anywhere
		c.do(fmt.Sprintf("insert into t select repeat('x', 100) from generate_series(1, %d)", 1+n*n*50))
		c.Stop()
		control := postgrestest.Run(t, postgrestest.Tool(c.Bin, "pg_controldata", c.Dir))
		last, err := xlog.ParseLSN(lastCheckpoint.FindStringSubmatch(control)[1])
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := a.Drain(1, filepath.Join(c.Dir, "pg_wal"), 1, last); err != nil {
				t.Fatal(err)
			}
			if err := a.Covers(1, 1, from, last+1); err != nil {
				t.Error(err)
			}
		}
		c.Start()
	}
	expectReceived(t, c, a, from)
}

var lastCheckpoint = regexp.MustCompile(`Latest checkpoint location: +(\S+)`)
