package postgres_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

func warmPool(t *testing.T, dir string, want int) *postgres.WarmPool {
	t.Helper()
	s, err := postgres.NewWarmPool(postgres.WarmPoolOptions{Dir: dir, Want: want, Bin: postgrestest.Binaries(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// systemIdentifier returns what distinguishes one cluster from another, for
// pg_basebackup and WAL tools.
func systemIdentifier(t *testing.T, dir string) string {
	t.Helper()
	bin := postgrestest.Binaries(t)
	cmd := exec.CommandContext(t.Context(), bin.Tool("pg_controldata"), dir)
	cmd.Env, cmd.Dir = bin.Env(), "/"
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "shut down\n") {
		t.Errorf("%s was not stopped in order", dir)
	}
	for line := range strings.Lines(string(out)) {
		if name, value, _ := strings.Cut(line, ":"); name == "Database system identifier" {
			return strings.TrimSpace(value)
		}
	}
	t.Fatal("no system identifier")
	return ""
}

func TestTakeInParallel(t *testing.T) {
	t.Parallel()
	dir, dest := t.TempDir(), t.TempDir()
	s := warmPool(t, dir, 2)
	s.Start()
	const takers = 4
	var wg sync.WaitGroup
	for n := range takers {
		wg.Go(func() {
			if err := s.Take(t.Context(), filepath.Join(dest, string(rune('a'+n)))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for n := range takers {
		seen[systemIdentifier(t, filepath.Join(dest, string(rune('a'+n))))] = true
	}
	if len(seen) != takers {
		t.Errorf("%d directories have %d system identifiers", takers, len(seen))
	}
	testenv.Within(t, 30*time.Second, "the pool filled again", func() bool { return s.Ready() == 2 })
	if _, err := os.Stat(filepath.Join(dest, "a", "log")); err == nil {
		t.Error("the directory contains a log")
	}
}

func TestWarmPoolAdopts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := warmPool(t, dir, 1)
	first.Start()
	testenv.Within(t, 30*time.Second, "a ready directory", func() bool { return first.Ready() == 1 })
	first.Close()
	for _, name := range []string{
		"prepared-1-15.1-old", "prepared-0-" + postgrestest.Binaries(t).Version + "-x", "prepared-1-" + postgrestest.Binaries(t).Version + "-y.building",
		"template-4-" + postgrestest.Binaries(t).Version, "template-6-15.1", "template-6-" + postgrestest.Binaries(t).Version + ".building",
	} {
		if err := os.MkdirAll(filepath.Join(dir, name, "base"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	second := warmPool(t, dir, 1)
	if second.Ready() != 1 {
		t.Errorf("adopted %d directories", second.Ready())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*-*")); len(left) != 2 {
		t.Errorf("left more than a prepared directory and the template: %q", left)
	}
}

func TestTakeRefusesWhatExists(t *testing.T) {
	t.Parallel()
	s := warmPool(t, t.TempDir(), 0)
	dest := t.TempDir()
	if err := s.Take(t.Context(), dest); !errors.Is(err, os.ErrExist) {
		t.Errorf("moved onto an existing directory: %v", err)
	}
	if s.Ready() != 1 {
		t.Errorf("the directory is lost: %d ready", s.Ready())
	}
	if err := s.Take(t.Context(), filepath.Join(dest, "new")); err != nil {
		t.Error(err)
	}
}

func TestCloseInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond, 900 * time.Millisecond} {
		dir := t.TempDir()
		s := warmPool(t, dir, 3)
		s.Start()
		taken := make(chan error, 1)
		go func() { taken <- s.Take(context.WithoutCancel(t.Context()), filepath.Join(dir, "taken")) }()
		time.Sleep(after) // hits different steps, each of which must close cleanly
		began := time.Now()
		s.Close()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("close took %v", took)
		}
		s.Close()
		if half, _ := filepath.Glob(filepath.Join(dir, "*.building")); len(half) > 0 {
			t.Errorf("left after %v: %q", after, half)
		}
		select {
		case err := <-taken:
			_, missing := os.Stat(filepath.Join(dir, "taken", "PG_VERSION"))
			if (err == nil) != (missing == nil) {
				t.Errorf("Take said %v, the directory %v", err, missing)
			}
		case <-time.After(5 * time.Second):
			t.Error("Take hangs after Close")
		}
		if err := s.Take(t.Context(), filepath.Join(dir, "late")); !errors.Is(err, postgres.ErrWarmPoolClosed) {
			t.Errorf("take after close: %v", err)
		}
		if running := processesBelow(t, dir); len(running) > 0 {
			t.Errorf("left running: %v", running)
		}
	}
}

// A build whose server is killed leaves nothing, not even its socket.
func TestBuildIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sockets, err := os.MkdirTemp("", "hf-s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	s, err := postgres.NewWarmPool(postgres.WarmPoolOptions{Dir: dir, Bin: postgrestest.Binaries(t), SocketDir: sockets})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	taken := make(chan error, 1)
	go func() { taken <- s.Take(context.WithoutCancel(t.Context()), filepath.Join(dir, "taken")) }()
	testenv.Catch(t, 30*time.Second, "a server to kill", func() bool {
		locks, _ := filepath.Glob(filepath.Join(sockets, ".s.PGSQL.*.lock"))
		if len(locks) == 0 {
			return false
		}
		lock, _ := os.ReadFile(locks[0])
		line, _, whole := strings.Cut(string(lock), "\n")
		pid, err := strconv.Atoi(line)
		return whole && err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil
	})
	if err := <-taken; err == nil {
		t.Error("it was taken although its server was killed")
	}
	for _, left := range []string{filepath.Join(sockets, ".s*"), filepath.Join(dir, "*")} {
		if found, _ := filepath.Glob(left); len(found) > 0 {
			t.Errorf("left: %q", found)
		}
	}
}

func TestTakeGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	s := warmPool(t, t.TempDir(), 1)
	s.Start()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Take(ctx, filepath.Join(t.TempDir(), "x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error: %v", err)
	}
	testenv.Within(t, 30*time.Second, "the pool gets the directory", func() bool { return s.Ready() == 1 })
}

// processesBelow returns the processes whose working directory is below dir.
func processesBelow(t *testing.T, dir string) []string {
	t.Helper()
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var found []string
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, dir+"/") {
			found = append(found, link)
		}
	}
	return found
}

// anotherProcess reports whether a database's server has a process that it had not before. Their number says nothing:
// others may have ended.
func anotherProcess(t *testing.T, d *postgrestest.Database, before []string) bool {
	t.Helper()
	return slices.ContainsFunc(processesBelow(t, filepath.Dir(d.Spec.Dir)), func(process string) bool { return !slices.Contains(before, process) })
}
