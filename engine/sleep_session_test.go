package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/databases"
	"holdfast/internal/testenv"
)

// A session through the proxy is like a direct one: the client verifies the server's
// certificate and binds its login to it, cancels its statements and moves much data.
func TestSleepSession(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	a.letSleep(t, db.ID, 10*time.Second)
	conn := connectVerified(t, connection)
	encrypted := false
	if err := conn.QueryRow(t.Context(), "select ssl from pg_stat_ssl where pid = pg_backend_pid()").Scan(&encrypted); err != nil || !encrypted {
		t.Errorf("TLS: %v, %v", encrypted, err)
	}
	if _, err := conn.Exec(t.Context(), "create table t (line text)"); err != nil {
		t.Fatal(err)
	}
	sent := bytes.Repeat([]byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n"), 100<<20/64)
	if _, err := conn.PgConn().CopyFrom(t.Context(), bytes.NewReader(sent), "copy t from stdin"); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if _, err := conn.PgConn().CopyTo(t.Context(), &got, "copy t to stdout"); err != nil || !bytes.Equal(got.Bytes(), sent) {
		t.Errorf("%d of %d bytes came back, %v", got.Len(), len(sent), err)
	}
	canceled := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "select pg_sleep(60)")
		canceled <- err
	}()
	testenv.Eventually(t, "the cancellation", func() bool {
		if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case err := <-canceled:
			pg, ok := errors.AsType[*pgconn.PgError](err)
			return ok && pg.Code == "57014"
		default:
			return false
		}
	})
}

// connectVerified opens a session that verifies the server and binds the login to its
// certificate.
func connectVerified(t testing.TB, c databases.Connection) *pgx.Conn {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, []byte(c.CACertificate), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig("host=127.0.0.1 port=" + strconv.Itoa(c.Port) + " user=" + c.User + " dbname=" + c.Database +
		" sslmode=verify-full channel_binding=require sslrootcert=" + ca)
	if err != nil {
		t.Fatal(err)
	}
	config.Password = c.Password.Reveal()
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
