package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// TestKillOrphanClearsSharedMemory: of a server that was killed with all its processes nothing remains in the kernel, which
// has room for 4,096 of its segments.
func TestKillOrphanClearsSharedMemory(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	_, _, postmaster := s.Status(d.Spec.ID)
	files := sharedFiles(t, postmaster)
	segment := segmentOf(t, d.Spec.Dir)
	if len(files) == 0 || !hasSegment(t, segment) {
		t.Fatalf("the server has the files %v and the segment %s", files, segment)
	}
	s.Detach()
	for _, pid := range append([]int{postmaster}, postgres.ChildrenOf(postmaster)...) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	testenv.Within(t, 10*time.Second, "the end of the server", func() bool { return len(processesBelow(t, d.Spec.Dir)) == 0 })
	if err := postgres.KillOrphan(t.Context(), always(d.Spec.Bin), d.Spec.Dir); err != nil {
		t.Fatal(err)
	}
	if hasSegment(t, segment) {
		t.Errorf("the segment %s is still there", segment)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is still there", file)
		}
	}
}

// sharedFiles returns the files of dynamic shared memory that a process has mapped.
func sharedFiles(t *testing.T, pid int) []string {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile(`/dev/shm/PostgreSQL\.\d+`).FindAllString(string(maps), -1)
	slices.Sort(files)
	return slices.Compact(files)
}

// segmentOf returns the id of the System V segment that postmaster.pid names in its line 7, after the key.
func segmentOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 || len(strings.Fields(lines[6])) != 2 {
		t.Fatalf("postmaster.pid is %q", text)
	}
	return strings.Fields(lines[6])[1]
}

func hasSegment(t *testing.T, id string) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == id {
			return true
		}
	}
	return false
}
