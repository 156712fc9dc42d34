package postgres_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5/pgproto3"
)

// flood has logins knock at the instance until the test ends, which say who they
// would be and are silent then; whoever is sent away comes back at once.
func flood(t *testing.T, d *postgrestest.Database, clients int, parameters map[string]string) {
	t.Helper()
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
				halfLogin(ctx, fmt.Sprintf("127.0.0.1:%d", d.Spec.Config.Port), startup)
			}
		})
	}
}

// halfLogin says startup and waits until it is sent away.
func halfLogin(ctx context.Context, address string, startup []byte) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
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

// patientWithLogins is an instance that does not end silent logins by itself.
func patientWithLogins(t *testing.T) *postgrestest.Database {
	t.Helper()
	return postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.Config.Settings = map[string]string{"authentication_timeout": "10min", "max_connections": "12", "superuser_reserved_connections": "3"}
	})
}

// awaitFull waits until the superuser's connections are refused.
func awaitFull(t *testing.T, connect func(context.Context) error) {
	t.Helper()
	eventually(t, 30*time.Second, "the appliance is refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		return postgres.IsFull(connect(ctx))
	})
}

// Logins that are never finished do not keep the appliance out, however many
// there are and come back; who may connect is afterwards what it was.
func TestSiege(t *testing.T) {
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
		t.Errorf("while others knock: %v", err)
	}
	allowed(t, session, "select 1")
}
