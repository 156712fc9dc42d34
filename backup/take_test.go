package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"holdfast/blobstore"
)

// balances is what pgbench keeps equal: one value where all is consistent.
const balances = `select count(distinct s) from (
	select sum(abalance) s from pgbench_accounts union all select sum(tbalance) from pgbench_tellers
	union all select sum(bbalance) from pgbench_branches union all select coalesce(sum(delta), 0) from pgbench_history) b`

// TestRoundTripUnderLoad backs a server up while it works, restores, and has
// PostgreSQL's own tools judge the result.
func TestRoundTripUnderLoad(t *testing.T) {
	c := newCluster(t)
	c.pgbench(4)
	load := c.pgbenchCommand("-c", "4", "-j", "2", "-T", "600", "-n")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { load.Process.Kill(); load.Wait() })

	store, storeDir := openStore(t)
	var calls, lastDone, lastTotal int64
	result, err := Take(t.Context(), c.replication(), store, Options{Label: `it's a "label" \`, Progress: func(done, total int64) {
		if done < lastDone || done > total {
			t.Errorf("progress went from %d to %d of %d", lastDone, done, total)
		}
		calls, lastDone, lastTotal = calls+1, done, total
	}})
	if err != nil {
		t.Fatal(err)
	}
	if calls < 2 || lastDone != result.SizeBytes || lastTotal != result.SizeBytes {
		t.Errorf("%d calls of Progress, the last with %d of %d; size is %d", calls, lastDone, lastTotal, result.SizeBytes)
	}
	mustBeStored(t, store, result)
	load.Process.Kill()

	dir := filepath.Join(t.TempDir(), "restored")
	if err := Restore(t.Context(), store, result, dir, RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	run(t, pgTool(t, "pg_verifybackup", dir)) // parses the WAL, too

	r := startCluster(t, dir)
	if got := r.query(balances); got != "1" {
		t.Errorf("pgbench's balances have %s different sums", got)
	}
	if got := r.query("select count(*) from pgbench_accounts"); got != "400000" {
		t.Errorf("%s accounts", got)
	}
	if got := r.query("select count(*) > 0 from pgbench_history"); got != "t" {
		t.Error("the backup holds nothing of the load")
	}
	r.query("create extension amcheck")
	run(t, pgTool(t, "pg_amcheck", "-h", r.sockets, "-U", "postgres", "--heapallindexed", "postgres"))

	if err := store.Remove(result.Refs()...); err != nil {
		t.Fatal(err)
	}
	mustHoldNothing(t, storeDir)
}

func mustBeStored(t *testing.T, store *blobstore.Store, result Result) {
	t.Helper()
	var stored int64
	for _, ref := range result.Refs() {
		r, err := store.Open(ref)
		if err != nil {
			t.Fatal(err)
		}
		stored += r.Size()
		r.Close()
	}
	if stored != result.StoredBytes || stored >= result.SizeBytes {
		t.Errorf("StoredBytes is %d, the blobs have %d, SizeBytes is %d", result.StoredBytes, stored, result.SizeBytes)
	}
	if result.Timeline != 1 || !strings.HasPrefix(result.PostgresVersion, "1") {
		t.Errorf("timeline %d of PostgreSQL %q", result.Timeline, result.PostgresVersion)
	}
	if wal, err := result.walRange(); err != nil || wal.start >= wal.stop {
		t.Errorf("WAL %v, %v", wal, err)
	}
}

func TestTwoBackupsAtOnce(t *testing.T) {
	c := newCluster(t)
	store, _ := openStore(t)
	results := make([]Result, 2)
	var wg sync.WaitGroup
	for i := range results {
		conn := c.replication()
		wg.Go(func() {
			var err error
			if results[i], err = Take(t.Context(), conn, store, Options{Label: "one of two"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for _, result := range results {
		if err := Restore(t.Context(), store, result, filepath.Join(t.TempDir(), "r"), RestoreOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// TestConnectionIsReusable takes two backups over one connection.
func TestConnectionIsReusable(t *testing.T) {
	c := newCluster(t)
	store, _ := openStore(t)
	conn := c.replication()
	for range 2 {
		if _, err := Take(t.Context(), conn, store, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.query("select count(*) from pg_replication_slots"); got != "0" {
		t.Errorf("%s slots are left while the connection lives", got)
	}
}

// TestWALIsKept makes the server want to recycle the WAL that the backup under
// way needs.
func TestWALIsKept(t *testing.T) {
	c := newCluster(t)
	c.pgbench(2)
	store, _ := openStore(t)
	var once sync.Once
	result, err := Take(t.Context(), c.replication(), store, Options{Progress: func(int64, int64) {
		once.Do(func() {
			for range 8 {
				c.query("select pg_logical_emit_message(true, 'x', repeat('x', 9000000)), pg_switch_wal()")
				c.query("checkpoint")
			}
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "r")
	if err := Restore(t.Context(), store, result, dir, RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := startCluster(t, dir).query(balances); got != "1" {
		t.Errorf("%s different sums", got)
	}
}

func TestCancel(t *testing.T) {
	c := newCluster(t)
	c.pgbench(4)
	leaks := goleak.IgnoreCurrent()
	for name, after := range map[string]int64{"first byte": 1, "middle": 30 << 20} {
		t.Run(name, func(t *testing.T) {
			store, storeDir := openStore(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("changed my mind")
			conn := c.replication()
			_, err := Take(ctx, conn, store, Options{Progress: func(done, _ int64) {
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
			mustHoldNothing(t, storeDir)
			c.idle()
		})
	}
	goleak.VerifyNone(t, leaks)
}

func TestCancelBefore(t *testing.T) {
	c := newCluster(t)
	store, storeDir := openStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Take(ctx, c.replication(), store, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	mustHoldNothing(t, storeDir)
	c.idle()
}

func TestServerKilled(t *testing.T) {
	c := newCluster(t)
	c.pgbench(2)
	store, storeDir := openStore(t)
	conn := c.replication()
	walsender := int(conn.PID())
	var once sync.Once
	_, err := Take(t.Context(), conn, store, Options{Progress: func(int64, int64) {
		once.Do(func() {
			c.crash()
			// It would notice only when it has nothing to send.
			if err := syscall.Kill(walsender, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		})
	}})
	if err == nil {
		t.Fatal("a backup of a killed server succeeded")
	}
	t.Log(err)
	mustHoldNothing(t, storeDir)
}

// TestStoreFails closes the store in the middle, which Commit then finds.
func TestStoreFails(t *testing.T) {
	c := newCluster(t)
	store, storeDir := openStore(t)
	_, err := Take(t.Context(), c.replication(), store, Options{Progress: func(int64, int64) { store.Close() }})
	if !errors.Is(err, blobstore.ErrClosed) {
		t.Errorf("error %v", err)
	}
	mustHoldNothing(t, storeDir)
	c.idle()
}

func TestTablespaceIsRefused(t *testing.T) {
	c := newCluster(t)
	place := t.TempDir()
	c.query("create tablespace elsewhere location '" + place + "'")
	store, storeDir := openStore(t)
	_, err := Take(t.Context(), c.replication(), store, Options{})
	if err == nil || !strings.Contains(err.Error(), "tablespace at "+place) {
		t.Errorf("error %v", err)
	}
	mustHoldNothing(t, storeDir)
	c.idle()
}

// TestDamagedPage flips a byte in a table's file.
func TestDamagedPage(t *testing.T) {
	c := newCluster(t)
	c.query("create table t as select generate_series(1, 5000)")
	c.query("checkpoint")
	name := c.query("select pg_relation_filepath('t')")
	c.stop()
	flip(t, filepath.Join(c.dir, name), 8192+5000)
	c.start()
	store, storeDir := openStore(t)
	_, err := Take(t.Context(), c.replication(), store, Options{})
	if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("error %v, want one that names %s", err, name)
	}
	t.Log(err)
	mustHoldNothing(t, storeDir)
}

// flip changes one byte of a file; negative positions count from the end.
func flip(t testing.TB, path string, position int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if position < 0 {
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		position += info.Size()
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, position); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, position); err != nil {
		t.Fatal(err)
	}
}

func TestNotReplication(t *testing.T) {
	c := newCluster(t)
	store, storeDir := openStore(t)
	conn := c.ordinary()
	if _, err := Take(t.Context(), conn, store, Options{}); err == nil {
		t.Error("a backup over an ordinary connection succeeded")
	}
	mustHoldNothing(t, storeDir)
}

func TestLabel(t *testing.T) {
	for _, label := range []string{"a\nb", "a\x00b", "\xff", strings.Repeat("x", maxLabel+1)} {
		if _, err := baseBackupCommand(label); err == nil {
			t.Errorf("label %.20q was taken", label)
		}
	}
}
