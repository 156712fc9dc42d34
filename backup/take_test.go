package backup

import (
	"fmt"
	"testing"
)

// balances is what pgbench keeps equal: one value where all is consistent.
const balances = `select count(distinct s) from (
	select sum(abalance) s from pgbench_accounts union all select sum(tbalance) from pgbench_tellers
	union all select sum(bbalance) from pgbench_branches union all select coalesce(sum(delta), 0) from pgbench_history) b`

// TestRoundTripUnderLoad backs a server up while it works, several times, and
// has PostgreSQL's own tools judge what is restored.
func TestRoundTripUnderLoad(t *testing.T) {
	c := newCluster(t)
	c.pgbench(4)
	a := newArchive(c)
	load := c.pgbenchCommand("-c", "4", "-j", "2", "-T", "600", "-n")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { load.Process.Kill(); load.Wait() })
	repo, _ := openRepository(t)
	before := ""
	for n, opts := range []Options{{}, {}, {Whole: true}, {}} {
		opts.ID, opts.Base, opts.Label = fmt.Sprintf("b%d", n), before, `it's a "label" \`
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
		t.Logf("%+v", result)
		if calls < 1 || lastDone != lastTotal {
			t.Errorf("%d calls of Progress, the last with %d of %d", calls, lastDone, lastTotal)
		}
		if whole := n == 0 || n == 2; whole != (result.WholeReason != "") || whole != (result.ReadBytes >= result.SizeBytes) {
			t.Errorf("backup %d read %d of %d bytes, because: %q", n, result.ReadBytes, result.SizeBytes, result.WholeReason)
		}
		before = opts.ID
	}
	load.Process.Kill()
	load.Wait()
	c.query("checkpoint")
	report, err := repo.Verify(t.Context(), nil)
	if err != nil || report.Err() != nil || report.Backups != 4 {
		t.Fatalf("verify: %+v, %v", report, err)
	}
	for n := range 4 {
		dir := restored(t, repo, fmt.Sprintf("b%d", n), a)
		run(t, pgTool(t, "pg_verifybackup", dir)) // parses the WAL, too
		mustRun(t, dir)
	}
}

// mustRun starts PostgreSQL on a restored directory and has everything read.
func mustRun(t *testing.T, dir string) {
	t.Helper()
	r := startCluster(t, dir)
	if got := r.query(balances); got != "1" {
		t.Errorf("pgbench's balances have %s different sums", got)
	}
	r.query("create extension if not exists amcheck")
	run(t, pgTool(t, "pg_amcheck", "-h", r.sockets, "-U", "postgres", "--heapallindexed", "postgres"))
	r.stop()
	run(t, pgTool(t, "pg_checksums", "--check", "-D", dir))
}
