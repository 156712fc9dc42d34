package wal

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// baseBackup is a copy of a data directory made while the server ran.
type baseBackup struct {
	dir         string
	start, stop xlog.LSN
}

func takeBackup(t testing.TB, c *cluster) (b baseBackup) {
	t.Helper()
	conn := c.Connect()
	var start, stop, label string
	if err := conn.QueryRow(t.Context(), "select pg_backup_start('test', true)::text").Scan(&start); err != nil {
		t.Fatal(err)
	}
	b.dir = filepath.Join(t.TempDir(), "backup")
	copyData(t, c.Dir, b.dir)
	if err := conn.QueryRow(t.Context(), "select lsn::text, labelfile from pg_backup_stop(false)").Scan(&stop, &label); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "backup_label"), []byte(label), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start, _ = xlog.ParseLSN(start)
	b.stop, _ = xlog.ParseLSN(stop)
	return b
}

// copyData copies a data directory in use, without WAL.
func copyData(t testing.TB, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(from, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case strings.HasPrefix(name, "pg_wal/"), strings.HasPrefix(name, "pg_replslot/"), strings.HasPrefix(name, "postmaster."):
			return nil
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, os.WriteFile(filepath.Join(to, name), data, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"pg_replslot", "pg_wal/archive_status"} {
		if err := os.MkdirAll(filepath.Join(to, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// The copied directories under pg_replslot are slots of the original.
	slots, _ := filepath.Glob(filepath.Join(to, "pg_replslot", "*"))
	for _, slot := range slots {
		_ = os.RemoveAll(slot)
	}
}

// restoreTo restores b to a target, and leaves the server paused there.
func restoreTo(t testing.TB, a *Archive, bin binaries.Set, b baseBackup, target Target) (*cluster, Point) {
	t.Helper()
	target.Since = b.start
	resolution, err := a.Resolve(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	reach, err := resolution.Reach(b.stop)
	if err != nil {
		t.Fatal(err)
	}
	c, recovery := newRecovery(t, a, bin, b, reach)
	if err := recovery.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Launch()
	recovery.Exited = c.Exited
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if err := recovery.Run(ctx); err != nil {
		t.Fatalf("%v\n%s", err, c.Log())
	}
	return c, reach
}

// newRecovery sets up b as a standby that is to reach a record.
func newRecovery(t testing.TB, a *Archive, bin binaries.Set, b baseBackup, reach Point) (*cluster, Recovery) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if out, err := exec.Command("cp", "-a", b.dir, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "standby.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cluster{postgrestest.StoppedCluster(t, bin, dir, serverSettings...), t}
	recovery := Recovery{
		Archive: a, Start: b.start, Consistent: b.stop, Target: reach, Dir: dir, Connect: c.connectSQL,
	}
	for name, value := range recovery.Settings() {
		c.Settings = append(c.Settings, name+"="+value)
	}
	return c, recovery
}

// promote ends the pause: the server becomes a primary, without the recovery's settings.
func (c *cluster) promote() {
	c.t.Helper()
	c.do("select pg_promote()")
	testenv.Eventually(c.t, "the server is a primary", func() bool { return c.ask("select pg_is_in_recovery()::text") == "false" })
}

// targets returns the number of random targets to try: a few, or many if the environment says so.
func targets(t testing.TB, few int) int {
	text := os.Getenv("HOLDFAST_WAL_TARGETS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRandomTargets restores a backup, taken under load, to random times and positions, and compares the result with
// the writers' records.
func TestRandomTargets(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, bin binaries.Set) {
		c := newCluster(t, bin, smallSegment, "max_wal_size=8MB", "checkpoint_timeout=30s")
		a := openArchive(t, filepath.Join(t.TempDir(), "wal"))
		r := receive(t, c, a, 1)
		w := startWriters(t, c)
		r.waitFor(t, 1, c.flushed())
		b := takeBackup(t, c)
		first := time.Now()
		testenv.Eventually(t, "the writers have made enough WAL", func() bool { return c.flushed() > b.stop+6*smallSegment })
		last := time.Now()
		c.do("create table behind_last ()") // a commit that shows that the archive reaches this point
		w.stop()
		end := c.flushed()
		r.waitFor(t, 1, end)
		xids := commitsIn(t, a, b.start, end)
		w.judgeTargets(t, c, a, b, xids, first, last, end)
		for range targets(t, 4) {
			if rand.IntN(2) == 0 {
				at := first.Add(rand.N(last.Sub(first)))
				restored, reach := restoreTo(t, a, bin, b, Target{Generation: 1, Time: at})
				t.Logf("%v: %d rows of %d", reach, w.judge(t, restored, at), len(w.commits))
				restored.Stop()
				continue
			}
			at := b.stop + rand.N(end-b.stop)
			restored, _ := restoreTo(t, a, bin, b, Target{Generation: 1, LSN: at})
			judgeLSN(t, restored, xids, b.start, at)
			restored.Stop()
		}
	})
}

// commitsIn returns the end of each transaction's commit record in the archive.
func commitsIn(t testing.TB, a *Archive, from, to xlog.LSN) map[string]xlog.LSN {
	t.Helper()
	spans, err := a.spans(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	commits := map[string]xlog.LSN{}
	err = a.scanPath(t.Context(), spans, from, to, nil, func(r *xlog.Record) error {
		if outcome, _ := r.Outcome(); outcome == xlog.Committed && r.Info&0x70 == 0 /* a commit that was not prepared */ {
			commits[strconv.Itoa(int(r.XID))] = r.End
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return commits
}

// judgeLSN checks that of the transactions with a commit record in the WAL, exactly those that end by the target are
// there.
func judgeLSN(t testing.TB, c *cluster, commits map[string]xlog.LSN, from, target xlog.LSN) {
	t.Helper()
	there := map[string]bool{}
	for _, x := range strings.Fields(c.ask("select coalesce(string_agg(x, ' '), '') from numbers where n % 11 > 0")) {
		there[x] = true
		if end, known := commits[x]; known && end > target {
			t.Errorf("the commit of %s ends at %v, and is there at %v", x, end, target)
		}
	}
	written := 0
	for x, end := range commits {
		if end <= target && there[x] {
			written++
		}
	}
	if len(there) == 0 || written == 0 {
		t.Errorf("at %v there are %d transactions, %d of them from after %v", target, len(there), written, from)
	}
}

// TestRecoveryNeedsWhole: with a segment missing or damaged, recovery reports it and never promotes.
func TestRecoveryNeedsWhole(t *testing.T) {
	t.Parallel()
	bin := postgrestest.Binaries(t)
	c := newCluster(t, bin, smallSegment)
	a := openArchive(t, filepath.Join(t.TempDir(), "wal"))
	r := receive(t, c, a, 1)
	c.do("create table t (v text)")
	r.waitFor(t, 1, c.flushed())
	b := takeBackup(t, c)
	c.do("insert into t select repeat('x', 1000) from generate_series(1, 20000)")
	end := c.flushed()
	r.waitFor(t, 1, end)
	expectTidy(t, a)
	resolution, err := a.Resolve(t.Context(), Target{Generation: 1, LSN: end, Since: b.start})
	if err != nil {
		t.Fatal(err)
	}
	restored, recovery := newRecovery(t, a, bin, b, resolution.Last)
	if err := recovery.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Far enough ahead that it is not installed yet.
	name := xlog.SegmentName(1, uint64(b.start)/smallSegment+feedAhead+4, smallSegment)
	path := filepath.Join(a.dir, "1", name+compressedSuffix)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte{}, whole...)
	damaged[len(damaged)/2] ^= 1
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	restored.Launch()
	recovery.Exited = restored.Exited
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	expectGap(t, recovery.Run(ctx), name, "checksum")
	restored.WaitReady()
	if got := restored.ask("select pg_is_in_recovery()::text"); got != "true" {
		t.Error("the server has promoted itself")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expectGap(t, recovery.Run(ctx), name, "")
	// The segment is restored, and recovery continues; the server is killed on the way.
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	restored.Crash()
	restored.Launch()
	recovery.Exited = restored.Exited
	if err := recovery.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := restored.ask("select count(*)::text from t"); n != "20000" {
		t.Errorf("%s rows", n)
	}
	left, _ := os.ReadDir(filepath.Join(restored.Dir, "pg_wal"))
	t.Logf("%d files in pg_wal", len(left))
}

// expectGap expects a GapError that names a segment and the problem.
func expectGap(t testing.TB, err error, segment, what string) {
	t.Helper()
	gap := new(GapError)
	if !errors.Is(err, ErrGap) || !errors.As(err, &gap) || gap.Segment != segment || !strings.Contains(err.Error(), what) {
		t.Errorf("got %v, want a gap at %s: %s", err, segment, what)
	}
}

// TestFill: with all WAL installed beforehand, a server that is not fed recovers, and promotes itself exactly at the
// target.
func TestFill(t *testing.T) {
	t.Parallel()
	bin := postgrestest.Binaries(t)
	c := newCluster(t, bin, smallSegment)
	dir := filepath.Join(t.TempDir(), "wal")
	a := openArchive(t, dir)
	r := receive(t, c, a, 1)
	c.do("create table t (v text)")
	r.waitFor(t, 1, c.flushed())
	b := takeBackup(t, c)
	c.do("insert into t select repeat('x', 1000) from generate_series(1, 12000)")
	at := c.flushed()
	c.do("insert into t values ('too late')")
	r.waitFor(t, 1, c.flushed())
	expectTidy(t, a)
	// Like a user who has only the files, beside the writer.
	reader, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	resolution, err := reader.Resolve(t.Context(), Target{Generation: 1, LSN: at, Since: b.start})
	if err != nil {
		t.Fatal(err)
	}
	restored, recovery := newRecovery(t, reader, bin, b, resolution.Last)
	if err := recovery.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	restored.Settings = append(restored.Settings, "recovery_target_action=promote")
	restored.Start()
	testenv.Eventually(t, "the server is a primary", func() bool { return restored.ask("select pg_is_in_recovery()::text") == "false" })
	if n := restored.ask("select count(*)::text from t"); n != "12000" {
		t.Errorf("%s rows", n)
	}
}
