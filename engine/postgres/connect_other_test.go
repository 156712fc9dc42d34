package postgres_test

import (
	"bytes"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
)

// TestConnectReachesOnlyItsServer: the port of a server that has ended, and so the socket, may be another one's.
func TestConnectReachesOnlyItsServer(t *testing.T) {
	t.Parallel()
	one, two := postgrestest.Prepare(t), postgrestest.Prepare(t)
	sockets, err := postgres.SocketDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	one.Spec.Config.SocketDir, two.Spec.Config.SocketDir = sockets, sockets
	two.Spec.Config.Port = one.Spec.Config.Port
	s, _ := supervisor(t)
	if err := s.Start(t.Context(), one.Spec); err != nil {
		t.Fatal(err)
	}
	asleep, err := s.Sleep(t.Context(), one.Spec.ID, func() bool { return true }, func() error { return nil })
	if err != nil || !asleep {
		t.Fatalf("asleep: %v, %v", asleep, err)
	}
	if err := s.Start(t.Context(), two.Spec); err != nil {
		t.Fatal(err)
	}
	if conn, err := s.Connect(t.Context(), one.Spec.ID, "postgres"); !postgres.IsGone(err) {
		t.Errorf("connected to the other server: %v", err)
		_ = conn.Close(t.Context())
	}
	var dump bytes.Buffer
	if err := s.DumpSchema(t.Context(), one.Spec.ID, one.Spec.Bin.Tool("pg_dump"), "postgres", time.Second, &dump); !postgres.IsGone(err) {
		t.Errorf("dumped the other server: %v", err)
	}
	conn, err := s.Connect(t.Context(), two.Spec.ID, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
}
