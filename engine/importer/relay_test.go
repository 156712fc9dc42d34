package importer

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// slowConn returns from a write long after the server has it, as on a machine with
// more to do than processors. pgconn then reads in the background.
type slowConn struct {
	net.Conn
	slow *atomic.Bool
}

func (c slowConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.slow.CompareAndSwap(true, false) {
		time.Sleep(100 * time.Millisecond) // pgconn takes 15 ms for long
	}
	return n, err
}

// The client of a relay gets the first answer, whatever was read before.
func TestRelayAfterASlowWrite(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, "")
	var slow atomic.Bool
	cfg, err := pgx.ParseConfig("sslmode=require")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Host, cfg.Port, cfg.Database, cfg.User, cfg.Password = "127.0.0.1", uint16(o.Spec.Config.Port), "app", "boss", o.password.Reveal()
	cfg.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		return slowConn{conn, &slow}, nil
	}
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	slow.Store(true)
	if _, err := conn.Exec(t.Context(), "select 1"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r, err := openRelay(t.Context(), dir, conn.PgConn())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	r.start()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, err := pgx.Connect(ctx, "host="+dir+" port="+strconv.Itoa(r.port)+" user=import dbname=import sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.WithoutCancel(ctx))
	var n int
	if err := client.QueryRow(ctx, "select 2").Scan(&n); err != nil || n != 2 {
		t.Errorf("the first answer through the relay: %d, %v", n, err)
	}
}
