package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"holdfast/engine/model"
)

// relay lets one local client use an authenticated session with the source: it passes bytes between a private socket
// and the session. So a client tool needs no password, opens no connection of its own, and uses TLS by the rules of
// this process.
type relay struct {
	port     int // the number in the socket's name, by which libpq finds it
	listener net.Listener
	session  *pgconn.HijackedConn
	serving  sync.WaitGroup
	once     sync.Once
	refusal  error // why this side ended the session; read it after the relay is closed
}

// relays is how many a directory may have. With numbers below 1000 the socket's path is no longer than an instance's.
const relays = 999

// openRelay creates a socket below dir, which must be private, and takes over the session conn. It passes no bytes
// before start. The caller closes the relay.
func openRelay(ctx context.Context, dir string, conn *pgconn.PgConn) (*relay, error) {
	session, err := takeOver(ctx, conn)
	if err != nil {
		return nil, err
	}
	r := &relay{session: session}
	for r.port = 1; r.port <= relays; r.port++ {
		r.listener, err = net.Listen("unix", filepath.Join(dir, ".s.PGSQL."+strconv.Itoa(r.port)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open relay: %w", err), session.Conn.Close())
	}
	return r, nil
}

// takeOver takes the session from conn, which is unusable afterwards. After a write that took long, pgconn reads in the
// background, and would take the next answer of the server; SyncConn ends that.
func takeOver(ctx context.Context, conn *pgconn.PgConn) (*pgconn.HijackedConn, error) {
	if err := conn.SyncConn(ctx); err != nil {
		return nil, fmt.Errorf("take over session: %w", err)
	}
	session, err := conn.Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over session: %w", err)
	}
	return session, nil
}

// start lets the client in.
func (r *relay) start() { r.serving.Go(r.serve) }

// serve answers the single client.
func (r *relay) serve() {
	client, err := r.listener.Accept()
	if err != nil {
		return
	}
	defer client.Close()
	if err := r.acceptLogin(client); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		if _, err := io.Copy(client, r.session.Conn); model.CodeOf(err) == model.CodeValidation {
			r.refusal = err
		}
		_ = client.Close()
	})
	_, _ = io.Copy(r.session.Conn, client)
	_ = r.session.Conn.Close()
	back.Wait()
}

// acceptLogin plays the server in a log-in without authentication.
func (r *relay) acceptLogin(client net.Conn) error {
	server := pgproto3.NewBackend(client, client)
	if err := receiveStart(client, server); err != nil {
		return err
	}
	return greet(server, r.session)
}

// close ends the session, closes the socket, and waits for serve.
func (r *relay) close() {
	r.once.Do(func() {
		_ = r.listener.Close()
		_ = r.session.Conn.Close()
		r.serving.Wait()
	})
}
