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

// relay lets one client of this machine use a session with the source that is
// logged in already: a private socket, behind which bytes go through. So a
// client tool needs no password, opens no connection of its own, and speaks
// TLS by the rules of this process.
type relay struct {
	port     int // the number in the socket's name, by which libpq finds it
	listener net.Listener
	session  *pgconn.HijackedConn
	serving  sync.WaitGroup
	once     sync.Once
	refusal  error // why the session was ended from here; to be read when the relay is closed
}

// relays is how many there may be in a directory. With numbers below 1000 the
// socket's path is no longer than those of instances.
const relays = 999

// openRelay makes a socket below dir, which must be private, for the session
// conn, which is the relay's from then on. Nothing goes through before it is
// started. The caller closes it.
func openRelay(ctx context.Context, dir string, conn *pgconn.PgConn) (*relay, error) {
	// After a write that took long pgconn reads in the background, and would take
	// what the server answers to the client.
	if err := conn.SyncConn(ctx); err != nil {
		return nil, fmt.Errorf("take over session: %w", err)
	}
	session, err := conn.Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over session: %w", err)
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

// start lets the client in.
func (r *relay) start() { r.serving.Go(r.serve) }

// serve answers the one client there is.
func (r *relay) serve() {
	client, err := r.listener.Accept()
	if err != nil {
		return
	}
	defer client.Close()
	if err := r.welcome(client); err != nil {
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

// welcome is the server's side of a log-in that needs nothing.
func (r *relay) welcome(client net.Conn) error {
	server := pgproto3.NewBackend(client, client)
	for {
		message, err := server.ReceiveStartupMessage()
		if err != nil {
			return err
		}
		switch message.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			if _, err := client.Write([]byte{'N'}); err != nil {
				return err
			}
			continue
		case *pgproto3.StartupMessage:
		default:
			return errors.New("not a start of a session")
		}
		break
	}
	server.Send(&pgproto3.AuthenticationOk{})
	for name, value := range r.session.ParameterStatuses {
		server.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	server.Send(&pgproto3.BackendKeyData{ProcessID: r.session.PID, SecretKey: []byte{0, 0, 0, 0}})
	server.Send(&pgproto3.ReadyForQuery{TxStatus: r.session.TxStatus})
	return server.Flush()
}

// close ends the session and the socket, and waits.
func (r *relay) close() {
	r.once.Do(func() {
		_ = r.listener.Close()
		_ = r.session.Conn.Close()
		r.serving.Wait()
	})
}
