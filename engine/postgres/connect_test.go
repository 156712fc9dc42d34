package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// full starts an instance that does not end silent logins.
func full(t *testing.T) *postgrestest.Database {
	t.Helper()
	return postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.Config.Settings = map[string]string{"authentication_timeout": "10min"}
	})
}

// fill takes every connection slot of the instance without logging in. It returns a
// function that frees them.
func fill(t *testing.T, d *postgrestest.Database) (leave func()) {
	t.Helper()
	var all []net.Conn
	leave = func() {
		for _, c := range all {
			_ = c.Close()
		}
		all = nil
	}
	t.Cleanup(leave)
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s dbname=postgres", d.SocketDir(t), d.Spec.Config.Port, postgres.Superuser))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0 // times in a row: connections that ended freed slots for others
	testenv.Within(t, 30*time.Second, "the superuser is refused", func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", d.Spec.Config.Port))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		if len(all)%40 != 0 {
			return false
		}
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err == nil {
			_ = conn.Close(t.Context())
		}
		if refused++; !postgres.IsFull(err) {
			refused = 0
		}
		return refused == 3
	})
	return leave
}

// A caller that is refused because all connection slots are taken waits for one,
// and gets the server's error if none becomes free.
func TestConnectWaitsForAPlace(t *testing.T) {
	t.Parallel()
	d := full(t)
	leave := fill(t, d)
	if _, err := d.Supervisor.Connect(within(t, 300*time.Millisecond), d.Spec.ID, "postgres"); !postgres.IsFull(err) {
		t.Errorf("while there is none: %v", err)
	}
	time.AfterFunc(200*time.Millisecond, leave)
	d.Superuser(t, "postgres")
}

// A postmaster that serves others and has no slot for the supervisor keeps running:
// it is adopted once a slot is free.
func TestAdoptionOfAFullInstance(t *testing.T) {
	t.Parallel()
	d := full(t)
	session := d.Owner(t)
	_, _, pid := d.Supervisor.Status(d.Spec.ID)
	leave := fill(t, d)
	d.Supervisor.Detach()

	second, _ := supervisor(t)
	if err := second.Start(within(t, 500*time.Millisecond), d.Spec); !postgres.IsFull(err) {
		t.Fatalf("start: %v", err)
	}
	if err := session.Ping(t.Context()); err != nil {
		t.Fatalf("a session ended: %v", err)
	}
	if err := second.Keep(d.Spec); err != nil {
		t.Fatal(err)
	}
	leave()
	testenv.Within(t, time.Minute, "adopted", running(second, d.Spec.ID, 0))
	if _, _, now := second.Status(d.Spec.ID); now != pid || session.Ping(t.Context()) != nil {
		t.Errorf("postmaster %d instead of %d", now, pid)
	}
}

// A running postmaster that could not be adopted is stopped with its instance.
func TestStopOfOneNotAdopted(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	_, _, pid := d.Supervisor.Status(d.Spec.ID)
	d.Supervisor.Detach()
	rules := filepath.Join(d.Spec.Dir, "pg_hba.conf")
	if err := errors.Join(os.Remove(rules), os.MkdirAll(filepath.Join(rules, "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	s, _ := supervisor(t)
	if err := s.Keep(d.Spec); err != nil {
		t.Fatal(err)
	}
	testenv.Catch(t, 20*time.Second, "an attempt that failed", func() bool {
		state, _, _ := s.Status(d.Spec.ID)
		return state == postgres.StateDown || state == postgres.StateFailed
	})
	if err := s.Stop(t.Context(), d.Spec.ID); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(d.Spec.Dir, "postmaster.pid")); !os.IsNotExist(err) || syscall.Kill(pid, 0) == nil {
		t.Errorf("it was not stopped: %v", err)
	}
}

// A dump has its own slot when tenants' sessions fill the rest, and waits for one that a session of the appliance still has:
// PostgreSQL 15 cannot reserve one.
func TestDumpOfAFullInstance(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	for {
		conn, err := pgx.Connect(t.Context(), d.URL(d.Tenant.Owner, d.Tenant.OwnerPassword))
		if postgres.IsFull(err) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "dump"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ours := d.Superuser(t, "postgres") // takes the slot of the dump
	ending := time.AfterFunc(500*time.Millisecond, func() { _ = ours.Close(context.Background()) })
	defer ending.Stop()
	err = d.Supervisor.Dump(t.Context(), d.Spec.ID, d.Spec.Bin.Tool("pg_dump"), "app", time.Minute, out)
	if reserves := d.Spec.Bin.Major >= 16; (err == nil) != reserves {
		t.Errorf("a place is reserved: %v; dump: %v", reserves, err)
	}
}

// A tenant can block the start of sessions in its database. A session that the
// appliance has abandoned does not stay in the server.
func TestGivenUpSessionEnds(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	super := d.Superuser(t, "postgres")
	reader, vacuum := d.Owner(t), d.Owner(t)
	allowed(t, reader, "begin", "select count(*) from pg_class")
	var work sync.WaitGroup
	t.Cleanup(work.Wait)
	work.Go(func() { _, _ = vacuum.Exec(t.Context(), "vacuum full pg_class") })
	held := func() (sessions int) {
		if err := super.QueryRow(t.Context(), `select count(*) from pg_locks where not granted
			and pid not in (select pid from pg_stat_activity where usesysid is not null)`).Scan(&sessions); err != nil {
			t.Fatal(err)
		}
		return sessions
	}
	testenv.Within(t, time.Minute, "the lock is waited for", func() (waits bool) {
		if err := super.QueryRow(t.Context(), "select exists (select from pg_locks where not granted)").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	connected := make(chan error, 1)
	work.Go(func() {
		_, err := d.Supervisor.Connect(ctx, d.Spec.ID, "app")
		connected <- err
	})
	testenv.Within(t, time.Minute, "the session is held up", func() bool { return held() == 1 })
	giveUp()
	if err := <-connected; err == nil {
		t.Error("the session began")
	}
	testenv.Within(t, 10*time.Second, "its end", func() bool { return held() == 0 })
}
