package postgres_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

func TestStopOrphan(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context, string) error{
		"stop": postgres.StopOrphan,
		"kill": func(ctx context.Context, dir string) error {
			return postgres.KillOrphan(ctx, always(postgrestest.Binaries(t)), dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testEndOfOrphan(t, end)
		})
	}
}

// always returns the Find that finds bin for every version.
func always(bin binaries.Set) postgres.Find {
	return func(context.Context, int) (binaries.Set, error) { return bin, nil }
}

func testEndOfOrphan(t *testing.T, end func(context.Context, string) error) {
	d := postgrestest.Prepare(t)
	if err := end(t.Context(), d.Spec.Dir); err != nil {
		t.Errorf("nothing runs: %v", err)
	}
	if err := end(t.Context(), filepath.Join(t.TempDir(), "nothing")); err != nil {
		t.Errorf("no directory: %v", err)
	}
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	_, _, pid := s.Status(d.Spec.ID)
	conn, err := s.Connect(t.Context(), d.Spec.ID, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	s.Detach()
	// A stopped backend makes force necessary, which is fine.
	if err := syscall.Kill(int(conn.PgConn().PID()), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := end(within(t, 100*time.Millisecond), d.Spec.Dir); err != nil {
		t.Error(err)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Error("it still runs")
	}
	if left := processesBelow(t, filepath.Dir(d.Spec.Dir)); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// An appliance killed during a build for the warm pool leaves its postmaster
// running.
func TestBuildLeftRunning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := postgrestest.Binaries(t)
	half := filepath.Join(dir, "prepared-1-"+bin.Version+"-x.building")
	if err := postgres.Init(t.Context(), bin, half); err != nil {
		t.Fatal(err)
	}
	s, _ := supervisor(t)
	spec := postgres.Spec{ID: "half", Bin: bin, Dir: half, Config: postgres.Config{Port: 5432}}
	if err := s.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	s.Detach()
	warmPool(t, dir, 1)
	if _, err := os.Stat(half); err == nil {
		t.Error("it is still there")
	}
	if left := processesBelow(t, dir); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// The kept log is bounded, however fast a tenant writes to it.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	allowed(t, d.ReadOnly(t), `do $$ declare x text := repeat('x', 1000000); begin
		for i in 1..150 loop raise log '%', x; end loop; end $$`)
	testenv.Within(t, 30*time.Second, "a log that was cut", func() bool {
		files, _ := filepath.Glob(filepath.Join(d.Spec.Dir, "log", "postgres*.log"))
		var sum int64
		for _, file := range files {
			if info, err := os.Stat(file); err == nil {
				sum += info.Size()
			}
		}
		return len(files) > 1 && sum <= 100<<20
	})
}

// A new log is requested again when the appliance that requested it died before
// it could signal the server.
func TestLogIsAskedForAgain(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	log := filepath.Join(d.Spec.Dir, "log", "postgres.log")
	testenv.Within(t, 30*time.Second, "a log", func() bool { _, err := os.Stat(log); return err == nil })
	if err := os.Rename(log, filepath.Join(d.Spec.Dir, "log", "postgres.1.log")); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, 30*time.Second, "a new log", func() bool { _, err := os.Stat(log); return err == nil })
}

// The postmaster opens a new log after a rotation.
func TestLogrotateSignal(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	log := filepath.Join(d.Spec.Dir, "log", "postgres.log")
	testenv.Within(t, 30*time.Second, "a log", func() bool { _, err := os.Stat(log); return err == nil })
	if err := os.Rename(log, log+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Spec.Dir, "logrotate"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, pid := d.Supervisor.Status(d.Spec.ID)
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, 30*time.Second, "a new log", func() bool {
		_, _ = d.Owner(t).Exec(context.Background(), "select nonsense")
		data, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(data), "nonsense")
	})
}

// A killed server leaves its socket. The next server on its directory would take it
// over; without one, nothing must remain.
func TestSocketOfDeadServer(t *testing.T) {
	t.Parallel()
	sockets, err := os.MkdirTemp("", "hf-s") // a path short enough
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	d := postgrestest.Prepare(t)
	d.Spec.Config.SocketDir = sockets
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	_, _, pid := s.Status(d.Spec.ID)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context(), d.Spec.ID); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(sockets); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// The next appliance removes what a killed one left, even while the server is an
// unreaped zombie; sockets in use stay.
func TestClearSockets(t *testing.T) {
	t.Parallel()
	sockets, err := os.MkdirTemp("", "hf-s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	d := postgrestest.Prepare(t)
	d.Spec.Config.SocketDir = sockets
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	used := postgres.SocketPath(sockets, d.Spec.Config.Port)
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zombie.Wait() }()
	for port, pid := range map[int]int{1: zombie.Process.Pid, 2: os.Getpid(), 3: 0} {
		socket := postgres.SocketPath(sockets, port)
		for path, content := range map[string]string{socket: "", socket + ".lock": fmt.Sprintf("%d\n%s\n", pid, d.Spec.Dir)} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := postgres.ClearSockets(sockets); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(sockets, ".s.PGSQL.*"))
	if err != nil || !slices.Equal(left, []string{used, used + ".lock"}) {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A killed server may stay a zombie for a while, if init is slow to reap it or
// there is no init. Its database still restarts at once.
func TestStartBesideZombie(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	_, _, pid := s.Status(d.Spec.ID)
	s.Detach() // nothing reaps the process now
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, 30*time.Second, "its end", func() bool { return !postgres.IsServed(d.Spec.Dir) })
	next, _ := supervisor(t)
	if err := next.Start(t.Context(), d.Spec); err != nil {
		t.Errorf("start: %v", err)
	}
}
