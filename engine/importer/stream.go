package importer

import (
	"context"
	"errors"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// largestChange limits one message of a stream of changes, in bytes: PostgreSQL itself allocates no more at a time. The
// subscriber holds a message in memory; here it is only passed on.
const largestChange = 1 << 30

// streamBounds limit what the source sends to a subscriber. A stream has no end, and every message of its COPY is one
// change, which must not be cut.
var streamBounds = bounds{what: "changes", message: largestMessage, bytes: 64 << 20, rows: 500_000, copies: true, whole: largestChange}

// openStream opens a session with the source for a subscriber.
func openStream(ctx context.Context, source Source) (*pgconn.HijackedConn, error) {
	conn, err := source.replicate(ctx)
	if err != nil {
		return nil, err
	}
	expect(conn, streamBounds)
	session, err := takeOver(ctx, conn.PgConn())
	if err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return session, nil
}

// receiveStart receives the start of a session from a client, and declines encryption, of which there are two kinds.
func receiveStart(client net.Conn, server *pgproto3.Backend) error {
	for range 3 {
		message, err := server.ReceiveStartupMessage()
		if err != nil {
			return err
		}
		switch message.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			if _, err := client.Write([]byte{'N'}); err != nil {
				return err
			}
		case *pgproto3.StartupMessage:
			return nil
		default:
			return errors.New("not a start of a session")
		}
	}
	return errors.New("asks for encryption again and again")
}

// greet tells a client that it is logged in, as the session's server has told this process.
func greet(server *pgproto3.Backend, session *pgconn.HijackedConn) error {
	server.Send(&pgproto3.AuthenticationOk{})
	for name, value := range session.ParameterStatuses {
		server.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	server.Send(&pgproto3.BackendKeyData{ProcessID: session.PID, SecretKey: []byte{0, 0, 0, 0}})
	server.Send(&pgproto3.ReadyForQuery{TxStatus: session.TxStatus})
	return server.Flush()
}
