package backup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"holdfast/backup/repository"
	"holdfast/engine/postgres/postgrestest"
)

// TestTakeKilled kills a process in the middle of a backup, at different points. The previous backup is unchanged,
// and nothing is left of the other.
func TestTakeKilled(t *testing.T) {
	c := newCluster(t)
	c.pgbench(2)
	repo, dir := openRepository(t)
	if _, err := Take(t.Context(), c.connect(), repo, instantly{}, Options{ID: "before"}); err != nil {
		t.Fatal(err)
	}
	repo.Close()
	c.query("update pgbench_accounts set abalance = abalance + 1 where aid % 3 = 0")
	before, sessions := repositoryFiles(t, dir), c.sessions()
	for _, percent := range []int64{1, 30, 70, 95} {
		killed(t, "take", helperArgs{URL: c.url("postgres"), Repository: dir, ID: "killed", Base: "before", Stop: percent})
		c.awaitSessions(sessions)
		repo, err := repository.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		leftovers, err := repo.Clean()
		if err != nil || len(leftovers) == 0 {
			t.Errorf("killed at %d %%: cleaned %v, %v", percent, leftovers, err)
		}
		ids, err := repo.Backups()
		if err != nil || len(ids) != 1 || ids[0] != "before" {
			t.Errorf("killed at %d %%: %v, %v", percent, ids, err)
		}
		report, err := repo.Verify(t.Context(), nil)
		if err != nil || report.Err() != nil {
			t.Errorf("killed at %d %%: %+v, %v", percent, report, err)
		}
		repo.Close()
		if after := repositoryFiles(t, dir); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("killed at %d %%: left %v, there were %v", percent, after, before)
		}
	}
}

func repositoryFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*/*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestRestoreKilled kills a restoring process at different points.
func TestRestoreKilled(t *testing.T) {
	repo, repoDir, _ := taken(t, 1)
	repo.Close()
	for _, percent := range []int64{1, 40, 70, 95} {
		dir := filepath.Join(t.TempDir(), "r")
		killed(t, "restore", helperArgs{Repository: repoDir, ID: "b", Dir: dir, Stop: percent})
		if _, err := os.Stat(filepath.Join(dir, controlFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("killed at %d %%, and there is a pg_control (%v)", percent, err)
		}
		if _, err := os.Stat(filepath.Join(dir, serverManifestFile)); err != nil {
			t.Errorf("killed at %d %%, and nothing was written: %v", percent, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "r")
	killed(t, "restore", helperArgs{Repository: repoDir, ID: "b", Dir: dir, Stop: 101})
	postgrestest.Run(t, pgTool(t, "pg_verifybackup", "-n", dir)) // it was about to return
}

// killed starts a helper, waits until it reports that it has reached its point, and kills it.
func killed(t *testing.T, task string, args helperArgs) {
	t.Helper()
	cmd := helper(task, args)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil {
		t.Fatalf("the process said %q, %v", line, err)
	}
}
