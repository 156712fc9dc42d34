package wal

import (
	"bufio"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/durable/faultfs"
	"holdfast/internal/testenv"
)

// TestKilledAtEveryStep kills a process that appends at each of its file operations: all confirmed WAL is there.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	b := longWAL(2, nil)
	for k, finished := 0, false; !finished; k += 1 + rand.IntN(3) {
		dir := filepath.Join(t.TempDir(), "wal")
		out, err := helper("append", helperArgs{Archive: dir, Kill: k}).Output()
		finished = err == nil
		end := b.Start
		for line := range strings.Lines(string(out)) {
			if end, err = xlog.ParseLSN(strings.TrimSpace(line)); err != nil {
				t.Fatal(err)
			}
		}
		expectWAL(t, dir, b, end)
		a, w, err := openWriter(dir, &faultfs.FS{NoSync: true})
		if err != nil {
			t.Fatalf("killed at %d: %v", k, err)
		}
		if err := appendAll(w, b, func(xlog.LSN) {}); err != nil {
			t.Errorf("killed at %d, and then: %v", k, err)
		}
		w.Close()
		a.Close()
		expectWAL(t, dir, b, b.Pos())
	}
}

// startReceiver starts a process that receives c's WAL.
func startReceiver(t *testing.T, c *cluster, dir string) *exec.Cmd {
	t.Helper()
	cmd := helper("receive", helperArgs{URL: c.URL(), Dir: filepath.Join(c.Dir, "pg_wal"), Archive: dir})
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "receiving\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd
}

func kill(process *exec.Cmd) {
	_ = process.Process.Kill()
	_ = process.Wait()
}

// TestKilledReceiver kills the receiver, the postmaster, and both, under load: the archive has every acknowledged
// commit once the server and a receiver are back, and receiving continues without a gap.
func TestKilledReceiver(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment, "max_wal_size=100MB")
	c.do("create table answered (client int, n int)")
	dir := filepath.Join(t.TempDir(), "wal")
	var from xlog.LSN
	for _, who := range []string{"receiver", "postmaster", "both", "receiver", "both"} {
		process := startReceiver(t, c, dir)
		testenv.Eventually(t, "the slot keeps WAL", func() bool {
			return c.ask("select count(*)::text from pg_replication_slots where restart_lsn is not null") == "1"
		})
		if from == 0 {
			from = c.flushed()
		}
		answered := commitUntil(t, c, func() {
			if who != "postmaster" {
				kill(process)
			}
			if who != "receiver" {
				c.Crash()
			}
		})
		if who != "receiver" {
			c.Start()
		}
		if who == "postmaster" {
			awaitArchived(t, c)
		}
		kill(process)
		if who != "postmaster" {
			process = startReceiver(t, c, dir)
			awaitArchived(t, c)
			kill(process)
		}
		expectCommits(t, dir, from, answered, who)
	}
}

// awaitArchived waits until a receiver in another process has everything.
func awaitArchived(t *testing.T, c *cluster) {
	t.Helper()
	c.do("select pg_switch_wal()", "select pg_logical_emit_message(true, 'holdfast', 'behind it')")
	end := c.flushed() &^ (smallSegment - 1)
	testenv.Eventually(t, "the slot is advanced", func() bool {
		return c.lsn("select coalesce(max(restart_lsn), '0/0')::text from pg_replication_slots") >= end
	})
}

// commitUntil has some clients commit until end returns, and returns the acknowledged transactions.
func commitUntil(t *testing.T, c *cluster, end func()) (answered []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for client := range 4 {
		conn := c.Connect()
		wg.Go(func() {
			for n := 0; ; n++ {
				var xid string
				// A cancelled synchronous commit returns with a warning, so only the end of the connection ends it.
				err := conn.QueryRow(ctx, "insert into answered values ($1, $2) returning pg_current_xact_id()::text", client, n).Scan(&xid)
				if err != nil {
					return
				}
				mu.Lock()
				answered = append(answered, xid)
				mu.Unlock()
			}
		})
	}
	testenv.Eventually(t, "the clients have committed something", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(answered) > 300+rand.IntN(300)
	})
	end()
	cancel()
	wg.Wait()
	return answered
}

// expectCommits expects the commits in the archive.
func expectCommits(t *testing.T, dir string, from xlog.LSN, answered []string, who string) {
	t.Helper()
	a, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.mu.Lock()
	end := a.branches[1].end(1)
	a.mu.Unlock()
	commits := commitsIn(t, a, from, end)
	missing := 0
	for _, xid := range answered {
		if _, there := commits[xid]; !there {
			missing++
		}
	}
	if missing > 0 || len(answered) == 0 {
		t.Errorf("killed %s: of %d answered commits %d are missing", who, len(answered), missing)
	}
	t.Logf("killed %s: %d commits answered, all in the archive", who, len(answered))
}

// TestStoppedReceiver: a receiver that was suspended while the server removed all the WAL it could catches up when
// it resumes.
func TestStoppedReceiver(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment, "max_wal_size=2MB", "min_wal_size=2MB")
	c.do("create table t (v text)")
	dir := filepath.Join(t.TempDir(), "wal")
	process := startReceiver(t, c, dir)
	awaitArchived(t, c)
	from := c.flushed()
	if err := process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.do("insert into t select repeat('x', 1000) from generate_series(1, 5000)", "checkpoint")
	}
	if err := process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	end := c.flushed()
	awaitArchived(t, c)
	kill(process)
	a, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Check(t.Context(), 1, 1, from, end, nil); err != nil {
		t.Error(err)
	}
}
