package postgres_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// flood keeps starting logins at the instance until the test ends. Each sends a
// startup message and then nothing; one that is rejected connects again at once.
func flood(t *testing.T, d *postgrestest.Database, clients int, parameters map[string]string) {
	t.Helper()
	floodFrom(t, d, "127.0.0.1", clients, parameters)
}

// floodFrom is flood by clients with the given address of this machine.
func floodFrom(t *testing.T, d *postgrestest.Database, from string, clients int, parameters map[string]string) {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(stop)
	startup, err := (&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: parameters}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				halfLogin(ctx, dialer, fmt.Sprintf("127.0.0.1:%d", d.Spec.Config.Port), startup)
			}
		})
	}
}

// halfLogin sends startup and waits until it is disconnected.
func halfLogin(ctx context.Context, dialer *net.Dialer, address string, startup []byte) {
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, err = conn.Write(startup)
	for reply := make([]byte, 512); err == nil; {
		_, err = conn.Read(reply)
	}
}

// patientWithLogins starts an instance that does not end silent logins by itself.
func patientWithLogins(t *testing.T) *postgrestest.Database {
	t.Helper()
	return postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.Config.Settings = map[string]string{"authentication_timeout": "10min", "max_connections": "12", "superuser_reserved_connections": "3"}
	})
}

// awaitFull waits until the superuser's connections are refused.
func awaitFull(t *testing.T, connect func(context.Context) error) {
	t.Helper()
	testenv.Within(t, 30*time.Second, "the appliance is refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		return postgres.IsFull(connect(ctx))
	})
}

// Logins that never complete do not lock out the appliance, however many there are
// and however often they return; afterwards the rules are restored.
func TestLockout(t *testing.T) {
	t.Parallel()
	d := patientWithLogins(t)
	session := d.Owner(t)
	connect := func(ctx context.Context) error {
		conn, err := d.Supervisor.Connect(ctx, d.Spec.ID, "postgres")
		if err == nil {
			err = conn.Close(ctx)
		}
		return err
	}
	flood(t, d, 40, map[string]string{"user": "app", "database": "app"})
	awaitFull(t, connect)
	if err := connect(t.Context()); err != nil {
		t.Errorf("during a flood of logins: %v", err)
	}
	allowed(t, session, "select 1")
}

// An incomplete login is recognized by its title, which PostgreSQL truncates at the
// end of its arguments and environment: the longest names fit.
func TestLockoutOfLongNames(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", 63)
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.Config.Settings = map[string]string{"authentication_timeout": "10min", "max_connections": "12", "superuser_reserved_connections": "3"}
		s.HBA.Database, s.HBA.Users = name, []string{name}
		short := filepath.Join(os.TempDir(), rand.Text()[:8]) // a test's own path is long
		if err := os.Symlink(s.Dir, short); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(short) })
		s.Dir = short
	})
	connect := func(ctx context.Context) error {
		conn, err := d.Supervisor.Connect(ctx, d.Spec.ID, "postgres")
		if err == nil {
			err = conn.Close(ctx)
		}
		return err
	}
	floodFrom(t, d, "127.100.100.100", 40, map[string]string{"user": name, "database": name})
	awaitFull(t, connect)
	if err := connect(t.Context()); err != nil {
		t.Errorf("during a flood of logins: %v", err)
	}
}

// A lockout of incomplete logins from one address rejects no client from another,
// neither by a rule nor for longer than the lockout takes.
func TestLockoutSparesOtherAddresses(t *testing.T) {
	t.Parallel()
	d := patientWithLogins(t)
	connect := func(ctx context.Context) error {
		conn, err := d.Supervisor.Connect(ctx, d.Spec.ID, "postgres")
		if err == nil {
			err = conn.Close(ctx)
		}
		return err
	}
	floodFrom(t, d, "127.0.0.2", 40, map[string]string{"user": "app", "database": "app"})
	awaitFull(t, connect)
	var lockouts sync.WaitGroup
	for lockoutd := range 3 {
		lockouts.Go(func() {
			if err := connect(t.Context()); err != nil {
				t.Errorf("the appliance, lockout %d: %v", lockoutd, err)
			}
		})
		done := make(chan struct{})
		go func() { lockouts.Wait(); close(done) }()
		for over := false; !over; {
			conn, err := pgx.Connect(t.Context(), d.URL("app", d.Tenant.OwnerPassword))
			if err == nil {
				_ = conn.Close(t.Context())
			} else if !postgres.IsFull(err) {
				t.Fatalf("the owner, from another address: %v", err)
			}
			select {
			case <-done:
				over = true
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}
