package wal

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/durable"
	"holdfast/internal/durable/faultfs"
	"holdfast/internal/testenv"
)

// openArchive opens an archive until the test ends, with generation 1.
func openArchive(t testing.TB, dir string) *Archive {
	t.Helper()
	a, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if err := a.Create(1, nil); err != nil {
		t.Fatal(err)
	}
	return a
}

// receive receives c's WAL into a generation until the test ends.
func receive(t testing.TB, c *cluster, a *Archive, generation int, change ...func(*ReceiverOptions)) *Receiver {
	t.Helper()
	o := ReceiverOptions{Archive: a, Generation: generation, Slot: "holdfast", Dir: filepath.Join(c.Dir, "pg_wal"), SQL: c.connectSQL}
	for _, f := range change {
		f(&o)
	}
	r, err := OpenReceiver(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func (r *Receiver) waitFor(t testing.TB, timeline uint32, lsn xlog.LSN) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if err := r.WaitFor(ctx, timeline, lsn); err != nil {
		t.Fatalf("%v; status %+v", err, r.Status())
	}
}

// receiveOnce creates a table t, and returns an archive that has c's WAL up to a position and receives no more.
func receiveOnce(t *testing.T, c *cluster) (a *Archive, from xlog.LSN) {
	t.Helper()
	a = openArchive(t, filepath.Join(t.TempDir(), "wal"))
	r := receive(t, c, a, 1)
	c.do("create table t (v text)")
	from = c.flushed()
	r.waitFor(t, 1, from)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return a, from
}

// expectReceived receives the later WAL and checks that it is complete.
func expectReceived(t *testing.T, c *cluster, a *Archive, from xlog.LSN) {
	t.Helper()
	r := receive(t, c, a, 1)
	end := c.flushed()
	r.waitFor(t, 1, end)
	if err := a.Check(t.Context(), 1, 1, from, end, nil); err != nil {
		t.Error(err)
	}
}

// archived returns the WAL from the start of from's segment up to a position.
func archived(t testing.TB, a *Archive, generation int, timeline uint32, from, to xlog.LSN) []byte {
	t.Helper()
	spans, err := a.spans(generation, timeline)
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	err = a.stream(spans, from, to, func(_ xlog.LSN, piece []byte) error {
		all = append(all, piece...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestReceive: the archived WAL is what the server wrote, byte for byte, across segments, restarts and crashes of
// the server and of the receiver.
func TestReceive(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, bin binaries.Set) {
		c := newCluster(t, bin, smallSegment, "wal_keep_size=1GB", "max_wal_size=1GB")
		dir := filepath.Join(t.TempDir(), "wal")
		a := openArchive(t, dir)
		r := receive(t, c, a, 1)
		from := c.flushed()
		r.waitFor(t, 1, from)
		workload(c)
		r.waitFor(t, 1, c.flushed())
		c.Stop()
		c.Start()
		c.do("insert into t select g, 'after' from generate_series(10000, 20000) g")
		c.Crash()
		c.Start()
		c.do("insert into t select g, 'after' from generate_series(20001, 30000) g")
		r.waitFor(t, 1, c.flushed())
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		c.do("delete from t where id > 15000", "checkpoint")
		a = openArchive(t, dir)
		r = receive(t, c, a, 1)
		end := c.flushed()
		r.waitFor(t, 1, end)
		if err := a.Check(t.Context(), 1, 1, from, end, nil); err != nil {
			t.Error(err)
		}
		first := xlog.LSN(uint64(from) &^ (smallSegment - 1))
		var want []byte
		for _, file := range c.segments() {
			if _, n, _ := xlog.ParseSegmentName(filepath.Base(file), smallSegment); xlog.LSN(n*smallSegment) >= first {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, data...)
			}
		}
		got := archived(t, a, 1, 1, first, end.RecordEnd(smallSegment))
		if len(got) > len(want) || !bytes.Equal(got, want[:len(got)]) {
			t.Errorf("the archive's %d bytes from %v on are not the server's", len(got), first)
		}
		if problems, err := a.Verify(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
		expectTidy(t, a)
	})
}

// expectTidy checks that each segment exists once, and is compressed except for the last.
func expectTidy(t testing.TB, a *Archive) {
	t.Helper()
	testenv.Eventually(t, "all but the open segment is compressed", func() bool {
		partial, _ := filepath.Glob(filepath.Join(a.dir, "*", "*"+partialSuffix))
		return len(partial) <= 1
	})
	if left, _ := filepath.Glob(filepath.Join(a.dir, "*", "*"+durable.NewSuffix)); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// TestIdle: without any commit the latest restorable time advances, and the lag is measured.
func TestIdle(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment, "autovacuum=off")
	a := openArchive(t, filepath.Join(t.TempDir(), "wal"))
	r := receive(t, c, a, 1)
	c.do("create table t ()")
	r.waitFor(t, 1, c.flushed())
	committed := time.Now()
	testenv.Eventually(t, "the latest restorable time moves on", func() bool { return r.Status().RestorableTo.After(committed) })
	testenv.Eventually(t, "the slot is seen", func() bool { return r.Status().SlotState == "reserved" })
	s := r.Status()
	if s.State != StateStreaming || s.Backlog != 0 || s.Lag <= 0 {
		t.Errorf("status: %+v", s)
	}
	if rpo := s.RPO(time.Now()); rpo != s.Lag {
		t.Errorf("rpo %v", rpo)
	}
	c.Crash()
	testenv.Eventually(t, "the receiver notices", func() bool { return r.Status().State == StateConnecting })
	if s = r.Status(); s.LastError == "" || s.Failures == 0 || s.RPO(time.Now().Add(time.Hour)) < time.Hour {
		t.Errorf("status: %+v", s)
	}
}

// TestUnwatched: WAL is received even if the system does not report writes.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment)
	a, _ := receiveOnce(t, c)
	w, err := a.Writer(1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_, end, _ := w.Latest()
	if _, err := w.Start(1, end); err != nil {
		t.Fatal(err)
	}
	conn := c.Connect()
	if err := preparePosition(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	f := follower{
		r: &Receiver{o: ReceiverOptions{Slot: "holdfast"}, writer: w}, conn: conn, end: ^xlog.LSN(0),
		from:  source{dir: filepath.Join(c.Dir, "pg_wal"), timeline: 1, size: smallSegment},
		watch: newDirWatch(filepath.Join(c.Dir, "nothing")),
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx) }()
	waiting, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for range 3 {
		c.do("insert into t select repeat('x', 1000) from generate_series(1, 2000)")
		if err := a.WaitFor(waiting, 1, 1, c.flushed()); err != nil {
			t.Error(err)
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestSlotThatReservesNothing: an existing slot that has lost its WAL, which some major versions accept, is
// recreated before use.
func TestSlotThatReservesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment, "autovacuum=off")
	c.do("select pg_create_physical_replication_slot('holdfast', false)")
	conn := c.Connect()
	for range 2 {
		reserved, err := ensureSlot(t.Context(), conn, "holdfast")
		if err != nil || reserved == 0 {
			t.Fatalf("WAL is reserved from %v, %v", reserved, err)
		}
	}
}

// TestRecordCutOff: if the server has flushed a page and the rest of its last record waits for a commit, all commits
// are known to be archived.
func TestRecordCutOff(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment, "autovacuum=off", "wal_writer_delay=10ms")
	r := receive(t, c, openArchive(t, filepath.Join(t.TempDir(), "wal")), 1)
	c.do("create table t (v text)")
	conn := c.Connect()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := tx.Exec(t.Context(), "insert into t select repeat('x', 1000) from generate_series(1, 100)"); err != nil {
			t.Fatal(err)
		}
		var flushed xlog.LSN
		testenv.Eventually(t, "the server has flushed whole pages", func() bool {
			flushed = c.flushed()
			return flushed%8192 == 0 && c.lsn("select pg_current_wal_insert_lsn()::text")-flushed < 8192
		})
		quiet := time.Now()
		testenv.Eventually(t, "the latest restorable time moves on", func() bool { return r.Status().RestorableTo.After(quiet) })
		if s := r.Status(); s.Durable < flushed && c.flushed() == flushed {
			if s.Backlog != 0 || s.RPO(time.Now()) != s.Lag {
				t.Errorf("status: %+v", s)
			}
			return
		}
	}
	t.Error("the latest restorable time waits for the record's end")
}

// TestSlotLost: WAL that the server has removed is recorded as a gap, a new backup is requested, and receiving
// continues after it.
func TestSlotLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment, "max_slot_wal_keep_size=2MB", "max_wal_size=2MB", "min_wal_size=2MB")
	a := openArchive(t, filepath.Join(t.TempDir(), "wal"))
	r := receive(t, c, a, 1)
	c.do("create table t (v text)")
	r.waitFor(t, 1, c.flushed())
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	before := r.Status().Durable
	for c.ask("select wal_status from pg_replication_slots") != "lost" {
		c.do("insert into t select repeat('x', 1000) from generate_series(1, 4000)", "checkpoint")
	}
	lost := make(chan Gap, 1)
	r = receive(t, c, a, 1, func(o *ReceiverOptions) { o.Lost = func(g Gap) { lost <- g } })
	end := c.flushed()
	r.waitFor(t, 1, end)
	gap := <-lost
	known, _ := a.Generation(1)
	if gap.From != before || gap.To <= before || gap.To > end || len(known.Gaps) != 1 || known.Gaps[0].From != gap.From {
		t.Errorf("gap %+v, recorded %+v; durable was %v", gap, known.Gaps, before)
	}
	err := a.Covers(1, 1, before, end)
	if gapError := new(GapError); err == nil || !strings.Contains(err.Error(), ErrGap.Error()) {
		t.Errorf("the gap is covered: %v, %v", err, gapError)
	}
	if err := a.Covers(1, 1, end, end); err != nil {
		t.Error(err)
	}
	if missing := a.Missing([]Keep{{1, before}}); len(missing) > 0 {
		t.Errorf("the gap is recorded, and missing: %v", missing)
	}
}

// TestSlotDropped: if the slot is dropped and the WAL still exists, nothing is lost.
func TestSlotDropped(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment, "wal_keep_size=100MB", "max_wal_size=1GB")
	a, from := receiveOnce(t, c)
	c.do("select pg_drop_replication_slot('holdfast')", "insert into t select repeat('x', 1000) from generate_series(1, 4000)")
	expectReceived(t, c, a, from)
}

// TestDiverged: a server that has less WAL than the archive, or is another cluster, is refused permanently, with an
// explanation.
func TestDiverged(t *testing.T) {
	t.Parallel()
	bin := postgrestest.Binaries(t)
	c, other := newCluster(t, bin, smallSegment), &cluster{postgrestest.NewForeignCluster(t, bin, smallSegment, serverSettings...), t}
	a := openArchive(t, filepath.Join(t.TempDir(), "wal"))
	r := receive(t, c, a, 1)
	r.waitFor(t, 1, c.flushed())
	r.Close()
	r = receive(t, other, a, 1)
	testenv.Eventually(t, "another cluster is refused", func() bool { return r.Status().State == StateFailed })
	if s := r.Status(); !strings.Contains(s.LastError, "another cluster") {
		t.Errorf("status: %+v", s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if err := r.WaitFor(ctx, 1, 1<<60); err == nil || ctx.Err() != nil {
		t.Errorf("who waits for it is told %v", err)
	}
}

// TestReceiverFailedSync: the receiver fails permanently, with an explanation, and confirms nothing more; a reopened
// one continues without a gap.
func TestReceiverFailedSync(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment)
	var broken atomic.Bool
	fsys := &faultfs.FS{NoSync: true, Err: syscall.EIO, Hit: func(_ int, verb, _ string) bool { return broken.Load() && verb == "syncfile" }}
	dir := filepath.Join(t.TempDir(), "wal")
	a, err := Open(dir, Options{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Create(1, nil); err != nil {
		t.Fatal(err)
	}
	r := receive(t, c, a, 1)
	c.do("create table t (v text)")
	from := c.flushed()
	r.waitFor(t, 1, from)
	broken.Store(true)
	c.do("insert into t select repeat('x', 1000) from generate_series(1, 3000)")
	testenv.Eventually(t, "the receiver fails", func() bool { return r.Status().State == StateFailed })
	broken.Store(false)
	if s := r.Status(); !strings.Contains(s.LastError, ErrSync.Error()) || s.Durable > c.flushed() {
		t.Errorf("status: %+v", s)
	}
	if err := r.Failure(); !errors.Is(err, ErrSync) {
		t.Errorf("failure: %v", err)
	}
	for _, reopen := range []bool{false, true} {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if reopen {
			a.Close()
			a = openArchive(t, dir)
		}
		c.do("insert into t select repeat('y', 1000) from generate_series(1, 3000)")
		r = receive(t, c, a, 1)
		end := c.flushed()
		r.waitFor(t, 1, end)
		if err := a.Check(t.Context(), 1, 1, from, end, nil); err != nil {
			t.Error(err)
		}
	}
}

// TestReceiverFullDiskAtFirst: a full disk keeps the receiver from recording which cluster it receives. That does not mean
// another cluster, so the receiver goes on when there is space.
func TestReceiverFullDiskAtFirst(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment)
	var full atomic.Bool
	fsys := &faultfs.FS{NoSync: true, Err: syscall.ENOSPC, Hit: func(_ int, verb, _ string) bool { return full.Load() && verb == "create" }}
	a, err := Open(filepath.Join(t.TempDir(), "wal"), Options{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if err := a.Create(1, nil); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	r := receive(t, c, a, 1)
	testenv.Eventually(t, "a failure", func() bool { return r.Status().Failures > 0 })
	full.Store(false)
	r.waitFor(t, 1, c.flushed())
}

// TestReceiverFullDisk: while the disk is full the receiver retries and reports the reason; then it catches up.
func TestReceiverFullDisk(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment)
	var full atomic.Bool
	fsys := &faultfs.FS{NoSync: true, Err: syscall.ENOSPC, Hit: func(_ int, verb, _ string) bool { return full.Load() && (verb == "create" || verb == "write") }}
	a, err := Open(filepath.Join(t.TempDir(), "wal"), Options{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if err := a.Create(1, nil); err != nil {
		t.Fatal(err)
	}
	r := receive(t, c, a, 1)
	c.do("create table t (v text)")
	from := c.flushed()
	r.waitFor(t, 1, from)
	full.Store(true)
	c.do("insert into t select repeat('x', 1000) from generate_series(1, 3000)")
	testenv.Eventually(t, "the receiver says why", func() bool { return strings.Contains(r.Status().LastError, "no space left") })
	full.Store(false)
	end := c.flushed()
	r.waitFor(t, 1, end)
	if err := a.Check(t.Context(), 1, 1, from, end, nil); err != nil {
		t.Error(err)
	}
}
