package postgres_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// TestRecoveryStandsStill: a server whose recovery waits for a checkpointer that has died is started anew.
func TestRecoveryStandsStill(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	d := postgrestest.InstanceOf(t, postgrestest.Major(t, 18), func(*postgres.Spec) {})
	pid := awaitStandStill(t, d)
	testenv.Within(t, 90*time.Second, "another postmaster", func() bool {
		state, _, now := d.Supervisor.Status(d.Spec.ID)
		return state == postgres.StateRunning && now != pid
	})
	d.Owner(t)
}

// TestAdoptionWhileRecoveryStandsStill: such a server is also started anew if it is waited for.
func TestAdoptionWhileRecoveryStandsStill(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	d := postgrestest.InstanceOf(t, postgrestest.Major(t, 18), func(*postgres.Spec) {})
	pid := awaitStandStill(t, d)
	d.Supervisor.Detach()
	var log bytes.Buffer
	next := postgres.NewSupervisor(postgres.SupervisorOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
	defer next.Close(context.WithoutCancel(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	if err := next.Start(ctx, d.Spec); err != nil {
		t.Fatal(err)
	}
	if _, _, now := next.Status(d.Spec.ID); now == pid || !strings.Contains(log.String(), "stands still") {
		t.Errorf("the server of %d is %d:\n%s", pid, now, log.String())
	}
}

// awaitStandStill tries to have a server's recovery stand still until it does, and returns the postmaster.
func awaitStandStill(t *testing.T, d *postgrestest.Database) (pid int) {
	t.Helper()
	s := d.Supervisor
	for attempt := 1; attempt <= 40; attempt++ {
		testenv.Within(t, time.Minute, "the server", func() bool {
			conn, err := s.Connect(t.Context(), d.Spec.ID, "postgres")
			if err != nil {
				return false
			}
			defer conn.Close(t.Context())
			for _, statement := range []string{"drop table if exists public.big", "create table public.big as select repeat('x', 500) as v from generate_series(1, 200000)"} {
				if _, err := conn.Exec(t.Context(), statement); err != nil {
					return false
				}
			}
			return true
		})
		if _, _, pid = s.Status(d.Spec.ID); standStill(t, pid) {
			t.Logf("attempt %d", attempt)
			return pid
		}
	}
	t.Fatal("no recovery stood still")
	return 0
}

// standStill kills a process of a server and then, while the postmaster cannot notice that the replay began, the
// checkpointer in the checkpoint at its end. It reports whether the recovery stands still then.
func standStill(t *testing.T, postmaster int) bool {
	t.Helper()
	last := titled(postmaster, "checkpointer")
	if err := syscall.Kill(titled(postmaster, "walwriter"), syscall.SIGKILL); err != nil {
		return false
	}
	for end := time.Now().Add(10 * time.Second); slices.Contains(postgres.ChildrenOf(postmaster), last) && time.Now().Before(end); {
	}
	startup := stopBeforeReplay(postmaster)
	killed := false
	for end := time.Now().Add(10 * time.Second); startup != 0 && !killed && time.Now().Before(end); {
		if pid := titled(postmaster, "checkpointer performing end-of-recovery"); pid != 0 {
			killed = syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	_ = syscall.Kill(postmaster, syscall.SIGCONT)
	if !killed {
		return false
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if titled(postmaster, "startup") != startup {
			return false // the postmaster has begun again
		}
	}
	return true
}

// stopBeforeReplay stops a postmaster that has just started the processes that replay WAL and make checkpoints, and returns
// the former, 0 if it cannot.
func stopBeforeReplay(postmaster int) (startup int) {
	const started = 6 // with the one that writes the log, and three for I/O
	for end := time.Now().Add(10 * time.Second); len(postgres.ChildrenOf(postmaster)) < started; {
		if time.Now().After(end) {
			return 0
		}
	}
	_ = syscall.Kill(postmaster, syscall.SIGSTOP)
	for end := time.Now().Add(time.Second); startup == 0 && time.Now().Before(end); {
		startup = titled(postmaster, "startup")
	}
	return startup
}

// titled returns a child of a postmaster whose title has a text after the name of the cluster, 0 if there is none.
func titled(postmaster int, what string) int {
	for _, pid := range postgres.ChildrenOf(postmaster) {
		if strings.Contains(postgres.Title(pid), ": "+what) {
			return pid
		}
	}
	return 0
}
