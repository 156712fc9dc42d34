package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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

// witness records what a supervisor reports.
type witness struct {
	mu     sync.Mutex
	states []postgres.State
	last   string
}

func (w *witness) changed(_ string, state postgres.State, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states = append(w.states, state)
	w.last = reason
}

func (w *witness) seen() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.states)
}

// supervisor returns a supervisor that is closed when the test ends.
func supervisor(t *testing.T) (*postgres.Supervisor, *witness) {
	t.Helper()
	w := &witness{}
	s := postgres.NewSupervisor(postgres.SupervisorOptions{Changed: w.changed})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s, w
}

func running(s *postgres.Supervisor, id string, not int) func() bool {
	return func() bool {
		state, _, pid := s.Status(id)
		return state == postgres.StateRunning && pid != not
	}
}

func TestKilledPostmasterComesBack(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	s, w := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, _, pid := s.Status(d.Spec.ID)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		took := testenv.Within(t, 20*time.Second, "back after kill -9", running(s, d.Spec.ID, pid))
		t.Logf("back after %v", took)
		conn, err := s.Connect(t.Context(), d.Spec.ID, "postgres")
		if err != nil {
			t.Fatalf("connect after it came back: %v", err)
		}
		conn.Close(t.Context())
	}
	if got := w.seen(); got != "[starting running down running down running]" {
		t.Errorf("reported %s", got)
	}
}

// A busy backend does not notice that its postmaster is dead, and holds its shared
// memory; a hanging one does not even quit on request.
func TestKilledPostmasterComesBackDespiteItsChildren(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"busy": false, "hanging": true} {
		t.Run(name, func(t *testing.T) {
			d := postgrestest.Instance(t)
			owner := d.Owner(t)
			backend := int(owner.PgConn().PID())
			query := make(chan error, 1)
			go func() {
				_, err := owner.Exec(context.WithoutCancel(t.Context()), "do $$ begin loop end loop; end $$")
				query <- err
			}()
			super := d.Superuser(t, "postgres")
			testenv.Within(t, 10*time.Second, "a busy backend", func() bool {
				var state string
				err := super.QueryRow(t.Context(), "select state from pg_stat_activity where pid = $1", backend).Scan(&state)
				return err == nil && state == "active"
			})
			if hangs {
				if err := syscall.Kill(backend, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			_, _, pid := d.Supervisor.Status(d.Spec.ID)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			t.Logf("back after %v", testenv.Within(t, 20*time.Second, "back", running(d.Supervisor, d.Spec.ID, pid)))
			if err := <-query; err == nil {
				t.Error("the query came to an end")
			}
		})
	}
}

// Ctrl-C in the appliance's terminal goes to its process group. A postmaster stops
// only when the appliance stops it, in its order.
func TestOwnProcessGroup(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	_, _, pid := s.Status(d.Spec.ID)
	group, err := syscall.Getpgid(pid)
	if err != nil || group != pid {
		t.Errorf("process %d is in group %d, %v", pid, group, err)
	}
}

func TestReasonSaysHowItEnded(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	s, w := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 1)
	_, _, pid := s.Status(d.Spec.ID)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			w.mu.Lock()
			reason := w.last
			w.mu.Unlock()
			if reason != "" {
				heard <- reason
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	select {
	case reason := <-heard:
		if !strings.Contains(reason, "killed by signal 9") {
			t.Errorf("reason: %s", reason)
		}
	case <-time.After(10 * time.Second):
		t.Error("no reason was reported")
	}
	testenv.Within(t, 30*time.Second, "back", running(s, d.Spec.ID, pid))
}

func TestAdoption(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	first, _ := supervisor(t)
	if err := first.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	_, _, pid := first.Status(d.Spec.ID)
	first.Detach()
	if syscall.Kill(pid, 0) != nil {
		t.Fatal("Detach ended the postmaster")
	}

	second, w := supervisor(t)
	if err := second.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	if _, _, now := second.Status(d.Spec.ID); now != pid {
		t.Errorf("postmaster %d instead of the adopted %d", now, pid)
	}
	// It is supervised like the supervisor's own child.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, 20*time.Second, "back", running(second, d.Spec.ID, pid))
	if got := w.seen(); got != "[starting running down running]" {
		t.Errorf("reported %s", got)
	}
	second.Detach()
	third, _ := supervisor(t)
	if err := third.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	if err := third.Stop(t.Context(), d.Spec.ID); err != nil {
		t.Errorf("stop the adopted one: %v", err)
	}
	if _, err := os.Stat(filepath.Join(d.Spec.Dir, "postmaster.pid")); !os.IsNotExist(err) {
		t.Errorf("the adopted one was not stopped in order: %v", err)
	}
}

func TestAdoptionWithAnotherPort(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	first, _ := supervisor(t)
	if err := first.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	_, _, pid := first.Status(d.Spec.ID)
	first.Detach()
	port, err := postgres.FreePort(d.Spec.Config.Port+1, d.Spec.Config.Port+100, d.Spec.Config.Listen, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Spec.Config.Port = port
	second, _ := supervisor(t)
	if err := second.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	if _, _, now := second.Status(d.Spec.ID); now == pid {
		t.Error("it still runs with the old port")
	}
	if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
		t.Errorf("not on the new port: %v", err)
	} else {
		c.Close()
	}
}

// After a power failure the number in postmaster.pid may belong to any process,
// even one of the same user: PostgreSQL itself then refuses to start.
func TestReusedPID(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context(), d.Spec.ID); err != nil {
		t.Fatal(err)
	}
	stranger := exec.CommandContext(t.Context(), "sleep", "1000")
	stranger.Dir = d.Spec.Dir // the worst case
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	for _, pid := range []int{stranger.Process.Pid, os.Getpid(), 1, 4194303} {
		file := fmt.Sprintf("%d\n%s\n1\n%d\n%s\n127.0.0.1\n  1 1\nready   \n", pid, d.Spec.Dir, d.Spec.Config.Port, d.SocketDir(t))
		if err := os.WriteFile(filepath.Join(d.Spec.Dir, "postmaster.pid"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context(), d.Spec); err != nil {
			t.Fatalf("with the number of process %d: %v", pid, err)
		}
		if err := s.Stop(t.Context(), d.Spec.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger was ended: %v", err)
	}
}

// Another instance's postmaster is a stranger, too.
func TestPIDOfAnotherInstance(t *testing.T) {
	t.Parallel()
	other := postgrestest.Instance(t)
	_, _, pid := other.Supervisor.Status(other.Spec.ID)
	d := postgrestest.Prepare(t)
	if err := os.WriteFile(filepath.Join(d.Spec.Dir, "postmaster.pid"), []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	if _, _, own := s.Status(d.Spec.ID); own == pid {
		t.Error("adopted another instance's postmaster")
	}
	if state, _, now := other.Supervisor.Status(other.Spec.ID); state != postgres.StateRunning || now != pid {
		t.Error("the other instance was touched")
	}
}

func TestStartFailureHasTheLogLines(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	d.Spec.Config.Settings = map[string]string{"shared_buffers": "nonsense"}
	s, w := supervisor(t)
	err := s.Start(t.Context(), d.Spec)
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers"`) {
		t.Fatalf("error: %v", err)
	}
	if w.seen() != "[starting failed]" || !strings.Contains(w.last, "shared_buffers") {
		t.Errorf("reported %s, %s", w.seen(), w.last)
	}
	d.Spec.Config.Settings = nil
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Errorf("the id is not free after the failure: %v", err)
	}
}

// occupy listens on the instance's port, or on the next that has not been taken
// since it was chosen.
func occupy(t *testing.T, d *postgrestest.Database) net.Listener {
	t.Helper()
	for range 20 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", d.Spec.Config.Port))
		if err == nil {
			return l
		}
		d.Spec.Config.Port++
	}
	t.Fatal("no port to listen on")
	return nil
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	for _, listen := range [][]string{{"127.0.0.1"}, {"127.0.0.2", "127.0.0.1"}} {
		d := postgrestest.Prepare(t)
		d.Spec.Config.Listen = listen
		defer occupy(t, d).Close()
		s, _ := supervisor(t)
		err := s.Start(t.Context(), d.Spec)
		if !errors.Is(err, postgres.ErrPortInUse) || !strings.Contains(err.Error(), strconv.Itoa(d.Spec.Config.Port)) {
			t.Errorf("listening on %v: %v", listen, err)
		}
	}
}

// An address that was taken while the instance was down is detected although its
// recovery has since written much to the log.
func TestPortInUseAfterACrash(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	d.Spec.Config.Listen = []string{"127.0.0.1", "127.0.0.2"}
	first, _ := supervisor(t)
	if err := first.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	_, _, pid := first.Status(d.Spec.ID)
	first.Detach()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var foreign net.Listener
	testenv.Within(t, 10*time.Second, "a free address", func() bool {
		var err error
		foreign, err = net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", d.Spec.Config.Port))
		return err == nil
	})
	defer foreign.Close()
	second, _ := supervisor(t)
	if err := second.Start(t.Context(), d.Spec); !errors.Is(err, postgres.ErrPortInUse) {
		t.Errorf("start: %v", err)
	}
}

func TestKeepGoesOnTrying(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	l := occupy(t, d)
	s, w := supervisor(t)
	if err := s.Keep(d.Spec); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, 20*time.Second, "failed", func() bool { state, _, _ := s.Status(d.Spec.ID); return state == postgres.StateFailed })
	if _, reason, _ := s.Status(d.Spec.ID); !strings.Contains(reason, "in use") {
		t.Errorf("reason: %s", reason)
	}
	l.Close()
	testenv.Within(t, 20*time.Second, "running", running(s, d.Spec.ID, 0))
	t.Log(w.seen())
}

func TestRestart(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	_, _, pid := d.Supervisor.Status(d.Spec.ID)
	began := time.Now()
	if err := d.Supervisor.Restart(t.Context(), d.Spec.ID, time.Minute); err != nil {
		t.Fatal(err)
	}
	t.Logf("restart took %v", time.Since(began))
	if _, _, now := d.Supervisor.Status(d.Spec.ID); now == pid {
		t.Error("the same process")
	}
	d.Owner(t)
	err := d.Supervisor.Reconfigure(t.Context(), d.Spec.ID, time.Minute, func(s *postgres.Spec) {
		s.Config.Settings = map[string]string{"shared_buffers": "nonsense"}
	})
	if err == nil {
		t.Fatal("restarted with nonsense")
	}
	err = d.Supervisor.Reconfigure(t.Context(), d.Spec.ID, time.Minute, func(s *postgres.Spec) { s.Config.Settings = nil })
	if err != nil {
		t.Fatalf("after a failed restart: %v", err)
	}
	d.Owner(t)
}

func TestStopAtDeadline(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	_, _, pid := s.Status(d.Spec.ID)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	// A stopped backend delays a fast shutdown.
	conn, err := s.Connect(t.Context(), d.Spec.ID, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := syscall.Kill(int(conn.PgConn().PID()), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(done, d.Spec.ID); err == nil {
		t.Error("no word that it took force")
	}
	if syscall.Kill(pid, 0) == nil {
		t.Error("it still runs")
	}
	if err := s.Stop(t.Context(), d.Spec.ID); !errors.Is(err, postgres.ErrUnknownInstance) {
		t.Errorf("stop again: %v", err)
	}
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Errorf("start after an immediate shutdown: %v", err)
	}
}

// TestStopWhileReinitializing: a fast shutdown of a server that recovers from the death of one of its processes does not end
// by itself.
func TestStopWhileReinitializing(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	s, _ := supervisor(t)
	log := filepath.Join(d.Spec.Dir, "log", "postgres.log")
	reinitialized := func() int {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(text, []byte("reinitializing"))
	}
	for range 12 {
		if err := s.Start(t.Context(), d.Spec); err != nil {
			t.Fatal(err)
		}
		conn, err := s.Connect(t.Context(), d.Spec.ID, "postgres")
		if err != nil {
			t.Fatal(err)
		}
		before := reinitialized()
		if err := syscall.Kill(int(conn.PgConn().PID()), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for reinitialized() == before {
			time.Sleep(time.Millisecond)
		}
		if err := s.Stop(within(t, 20*time.Second), d.Spec.ID); errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		_ = conn.Close(t.Context())
		testenv.Within(t, 10*time.Second, "the end of all processes", func() bool { // that of the log ends last
			return len(processesBelow(t, filepath.Dir(d.Spec.Dir))) == 0
		})
	}
}

// TestAdoptionWhileStopping: a server that another process of the appliance has told to stop is started again.
func TestAdoptionWhileStopping(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	_, _, pid := s.Status(d.Spec.ID)
	s.Detach()
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	next, _ := supervisor(t)
	if err := next.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	if _, _, now := next.Status(d.Spec.ID); now == pid {
		t.Error("the same process")
	}
}

func TestStartIsCancelled(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	s, _ := supervisor(t)
	for _, after := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if err := s.Start(ctx, d.Spec); err == nil {
			t.Logf("was faster than %v", after)
			_ = s.Stop(t.Context(), d.Spec.ID)
		}
		cancel()
		if data, err := os.ReadFile(filepath.Join(d.Spec.Dir, "postmaster.pid")); err == nil {
			t.Errorf("a postmaster is left: %s", data)
		}
	}
}

func TestClosedSupervisor(t *testing.T) {
	t.Parallel()
	d := postgrestest.Prepare(t)
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), d.Spec); !errors.Is(err, postgres.ErrInstanceExists) {
		t.Errorf("started twice: %v", err)
	}
	_, _, pid := s.Status(d.Spec.ID)
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if syscall.Kill(pid, 0) == nil {
		t.Error("it still runs")
	}
	if err := s.Start(t.Context(), d.Spec); !errors.Is(err, postgres.ErrSupervisorClosed) {
		t.Errorf("start: %v", err)
	}
}

func TestChangesWaitForEachOther(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	var wg sync.WaitGroup
	for n := range 12 {
		wg.Go(func() {
			var err error
			switch n % 3 {
			case 0:
				err = d.Supervisor.Restart(t.Context(), d.Spec.ID, time.Minute)
			case 1:
				err = d.Supervisor.Update(t.Context(), d.Spec.ID, d.Spec.HBA)
			default:
				err = d.Supervisor.Reload(t.Context(), d.Spec.ID)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	d.Owner(t)
}
