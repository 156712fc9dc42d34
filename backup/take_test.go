package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/postgrestest"
)

// balances is what pgbench keeps equal: one value if everything is consistent.
const balances = `select count(distinct s) from (
	select sum(abalance) s from pgbench_accounts union all select sum(tbalance) from pgbench_tellers
	union all select sum(bbalance) from pgbench_branches union all select coalesce(sum(delta), 0) from pgbench_history) b`

// TestRoundTripUnderLoad backs up a working server several times, and has PostgreSQL's own tools check the restored
// directories, also after earlier backups are deleted.
func TestRoundTripUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.pgbench(4)
	a, archive := newArchive(c), newStreamed(t, c)
	load := c.pgbenchCommand("-c", "4", "-j", "2", "-T", "600", "-n")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { load.Process.Kill(); load.Wait() })
	repo, _ := openRepository(t)
	before := ""
	for n, opts := range []Options{{}, {}, {Whole: true}, {}} {
		opts.ID, opts.Base, opts.Label = fmt.Sprintf("b%d", n), before, `it's a "label" \`
		takeUnderLoad(t, c, archive, repo, opts, n == 0 || n == 2)
		before = opts.ID
	}
	load.Process.Kill()
	load.Wait()
	report, err := repo.Verify(t.Context(), nil)
	if err != nil || report.Err() != nil || report.Backups != 4 {
		t.Fatalf("verify: %+v, %v", report, err)
	}
	for n := range 4 {
		id := fmt.Sprintf("b%d", n)
		dir := restored(t, repo, id, a)
		postgrestest.Run(t, pgTool(t, "pg_verifybackup", dir)) // also parses the WAL
		mustRun(t, dir)
		if err := repo.Delete(id); err != nil {
			t.Fatal(err)
		}
		if _, err := repo.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func takeUnderLoad(t *testing.T, c *cluster, a WAL, repo *repository.Repository, opts Options, whole bool) {
	t.Helper()
	var calls, lastDone, lastTotal int64
	opts.Progress = func(done, total int64) {
		if done < lastDone || done > total {
			t.Errorf("progress went from %d to %d of %d", lastDone, done, total)
		}
		calls, lastDone, lastTotal = calls+1, done, total
	}
	result, err := Take(t.Context(), c.connect(), repo, a, opts)
	if err != nil {
		t.Fatal(err)
	}
	if calls < 2 || lastDone != lastTotal || lastDone != result.ReadBytes {
		t.Errorf("%d calls of Progress, the last with %d of %d; read were %d", calls, lastDone, lastTotal, result.ReadBytes)
	}
	if whole != (result.WholeReason != "") || whole != (result.ReadBytes >= result.SizeBytes) {
		t.Errorf("%s read %d of %d bytes, because: %q", opts.ID, result.ReadBytes, result.SizeBytes, result.WholeReason)
	}
	if result.Timeline != 1 || !strings.HasPrefix(result.PostgresVersion, "1") || result.Start >= result.Stop {
		t.Errorf("%+v", result)
	}
}

// mustRun starts PostgreSQL on a restored directory and reads everything.
func mustRun(t *testing.T, dir string) {
	t.Helper()
	r := startCluster(t, dir)
	if got := r.query(balances); got != "1" {
		t.Errorf("pgbench's balances have %s different sums", got)
	}
	r.query("create extension if not exists amcheck")
	postgrestest.Run(t, pgTool(t, "pg_amcheck", "-h", r.SocketDir, "-U", "postgres", "--heapallindexed", "postgres"))
	r.Stop()
	postgrestest.Run(t, pgTool(t, "pg_checksums", "--check", "-D", dir))
}

// TestBesideChanges takes incremental backups of a server whose files are created, removed and truncated
// continuously.
func TestBesideChanges(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.pgbench(1)
	a, archive := newArchive(c), newStreamed(t, c)
	c.query("create table kept as select n, repeat(md5(n::text), 4) as text from generate_series(1, 60000) n")
	c.query("create unlogged table unlogged as select generate_series(1, 1000) n")
	const sum = "select count(*) || ' ' || sum(hashtext(text)) from kept"
	want := c.query(sum)
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			for _, sql := range []string{
				"create table if not exists cut (n int, text text)",
				"insert into cut select n, repeat('x', 500) from generate_series(1, 5000) n",
				"truncate cut", "drop table cut", "vacuum full kept",
				fmt.Sprintf("create database d%d strategy %s", n, []string{"wal_log", "file_copy"}[n%2]),
				fmt.Sprintf("drop database if exists d%d", max(0, n-2)),
			} {
				c.query(sql)
			}
		}
	})
	repo, _ := openRepository(t)
	for n := range 4 {
		opts := Options{ID: fmt.Sprintf("b%d", n), Progress: func(int64, int64) { time.Sleep(15 * time.Millisecond) }} // for every MiB, so that changes happen meanwhile
		if n > 0 {
			opts.Base = fmt.Sprintf("b%d", n-1)
		}
		result, err := Take(t.Context(), c.connect(), repo, archive, opts)
		if err != nil {
			t.Fatal(err)
		}
		if (result.WholeReason == "") != (n > 0) {
			t.Errorf("%+v", result)
		}
	}
	cancel()
	load.Wait()
	for n := range 4 {
		dir := restored(t, repo, fmt.Sprintf("b%d", n), a)
		postgrestest.Run(t, pgTool(t, "pg_verifybackup", dir))
		mustRun(t, dir)
		r := startCluster(t, dir)
		if got := r.query(sum); got != want {
			t.Errorf("kept holds %s, want %s", got, want)
		}
		if got := r.query("select count(*) from unlogged"); got != "0" {
			t.Errorf("the unlogged table has %s rows after a restore", got)
		}
		r.Stop()
	}
}

// TestWholeReasons has no way to determine the changes.
func TestWholeReasons(t *testing.T) {
	c := newCluster(t)
	a := newArchive(c)
	repo, _ := openRepository(t)
	take := func(opts Options, want string) {
		t.Helper()
		result, err := Take(t.Context(), c.connect(), repo, a, opts)
		if err != nil || !strings.Contains(result.WholeReason, want) {
			t.Errorf("%+v, %v; want %q", result, err, want)
		}
	}
	take(Options{ID: "b1", Base: "nobody"}, "no earlier backup")
	take(Options{ID: "b2", Base: "b1", Whole: true}, "asked for")
	a.gap = fmt.Errorf("from here to there: %w", wal.ErrGap)
	take(Options{ID: "b3", Base: "b2"}, "from here to there")
	a.gap = nil
	take(Options{ID: "twin", Base: "b3", Generation: 2}, "another timeline")
	other := newForeignCluster(t)
	result, err := Take(t.Context(), other.connect(), repo, newArchive(other), Options{ID: "b4", Base: "b3"})
	if err != nil || !strings.Contains(result.WholeReason, "no earlier backup") {
		t.Errorf("backup of another cluster: %+v, %v", result, err)
	}
	a.gap = errors.New("the archive is out of order")
	if _, err := Take(t.Context(), c.connect(), repo, a, Options{ID: "b5", Base: "b3"}); !errors.Is(err, a.gap) {
		t.Errorf("error %v", err)
	}
}

// TestChecksumsSwitched has pg_checksums write pages without WAL.
func TestChecksumsSwitched(t *testing.T) {
	c := newCluster(t)
	c.query("create table t as select generate_series(1, 5000) n")
	c.Stop()
	postgrestest.Run(t, pgTool(t, "pg_checksums", "--disable", "-D", c.Dir))
	c.Start()
	c.query("update t set n = n + 1")
	a := newArchive(c)
	repo, _ := openRepository(t)
	take := func(opts Options, whole string) {
		t.Helper()
		result, err := Take(t.Context(), c.connect(), repo, a, opts)
		if err != nil || whole != result.WholeReason {
			t.Errorf("%s: %+v, %v; want %q", opts.ID, result, err, whole)
		}
	}
	take(Options{ID: "b0"}, "there is no earlier backup to compare with")
	take(Options{ID: "b1", Base: "b0"}, "")
	c.Stop()
	postgrestest.Run(t, pgTool(t, "pg_checksums", "--enable", "-D", c.Dir))
	c.Start()
	a = newArchive(c)
	take(Options{ID: "b2", Base: "b1"}, "page checksums were switched on or off since the earlier backup")
	take(Options{ID: "b3", Base: "b2"}, "")
	for _, id := range []string{"b2", "b3"} {
		dir := restored(t, repo, id, a)
		r := startCluster(t, dir)
		if got := r.query("select sum(n) from t"); got != "12507500" {
			t.Errorf("%s: the sum is %s", id, got)
		}
		r.Stop()
		postgrestest.Run(t, pgTool(t, "pg_checksums", "--check", "-D", dir))
	}
}

func TestCancel(t *testing.T) {
	c := newCluster(t)
	c.pgbench(4)
	a := newArchive(c)
	leaks := goleak.IgnoreCurrent()
	for name, after := range map[string]int64{"first byte": 1, "middle": 30 << 20} {
		t.Run(name, func(t *testing.T) {
			repo, dir := openRepository(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("changed my mind")
			conn := c.connect()
			_, err := Take(ctx, conn, repo, a, Options{ID: "b", Progress: func(done, _ int64) {
				if done >= after {
					cancel(enough)
				}
			}})
			if !errors.Is(err, enough) {
				t.Fatalf("error %v", err)
			}
			if !conn.IsClosed() {
				t.Error("the connection is still open")
			}
			mustHoldNothing(t, dir)
		})
	}
	goleak.VerifyNone(t, leaks)
}

// TestWALIsNotArchived ends a backup whose WAL never arrives.
func TestWALIsNotArchived(t *testing.T) {
	c := newCluster(t)
	repo, dir := openRepository(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Take(ctx, c.connect(), repo, never{}, Options{ID: "b"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	mustHoldNothing(t, dir)
	if _, err := Take(t.Context(), c.connect(), repo, never{}, Options{ID: "b", Patience: time.Second}); !errors.Is(err, ErrNotArchived) {
		t.Errorf("beyond its patience: %v", err)
	}
	mustHoldNothing(t, dir)
}

// never is an archive that receives nothing.
type never struct{ *archive }

func (never) WaitFor(ctx context.Context, _ uint32, _ xlog.LSN) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestConnectionIsLost ends the session that keeps the backup open.
func TestConnectionIsLost(t *testing.T) {
	c := newCluster(t)
	c.pgbench(2)
	a := newArchive(c)
	repo, dir := openRepository(t)
	conn := c.connect()
	var once sync.Once
	_, err := Take(t.Context(), conn, repo, a, Options{ID: "b", Progress: func(int64, int64) {
		once.Do(func() { c.query(fmt.Sprintf("select pg_terminate_backend(%d)", conn.PgConn().PID())) })
	}})
	if err == nil {
		t.Fatal("a backup succeeded without the session that began it")
	}
	mustHoldNothing(t, dir)
}

func TestServerKilled(t *testing.T) {
	c := newCluster(t)
	c.pgbench(2)
	a := newArchive(c)
	repo, dir := openRepository(t)
	conn := c.connect()
	backend := int(conn.PgConn().PID())
	var once sync.Once
	_, err := Take(t.Context(), conn, repo, a, Options{ID: "b", Progress: func(int64, int64) {
		once.Do(func() {
			c.Kill()
			_ = syscall.Kill(backend, syscall.SIGKILL)
		})
	}})
	if err == nil {
		t.Fatal("a backup of a killed server succeeded")
	}
	mustHoldNothing(t, dir)
}

func TestTablespaceIsRefused(t *testing.T) {
	c := newCluster(t)
	place := t.TempDir()
	c.query("create tablespace elsewhere location '" + place + "'")
	repo, dir := openRepository(t)
	_, err := Take(t.Context(), c.connect(), repo, newArchive(c), Options{ID: "b"})
	if err == nil || !strings.Contains(err.Error(), "tablespace at "+place) {
		t.Errorf("error %v", err)
	}
	mustHoldNothing(t, dir)
}

// TestDamagedPage flips a byte in a table's file: in a row, and in the LSN, which then says that the page has just
// changed.
func TestDamagedPage(t *testing.T) {
	for what, at := range map[string]int64{"row": 5000, "LSN": 3} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t)
			c.query("create table t as select generate_series(1, 5000)")
			c.query("checkpoint")
			name := c.query("select pg_relation_filepath('t')")
			c.Stop()
			flip(t, filepath.Join(c.Dir, name), 2*8192+at)
			c.Start()
			repo, dir := openRepository(t)
			_, err := Take(t.Context(), c.connect(), repo, newArchive(c), Options{ID: "b"})
			if err == nil || !strings.Contains(err.Error(), name+" block 2") || !strings.Contains(err.Error(), "checksum") {
				t.Errorf("error %v, want one that names %s", err, name)
			}
			mustHoldNothing(t, dir)
		})
	}
}

// flip changes one bit of a file.
func flip(t testing.TB, path string, position int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, position); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, position); err != nil {
		t.Fatal(err)
	}
}

func TestLabel(t *testing.T) {
	for _, label := range []string{"a\nb", "a\x00b", "\xff", strings.Repeat("x", maxLabel+1)} {
		if checkLabel(label) == nil {
			t.Errorf("label %.20q was taken", label)
		}
	}
}
