package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// Target opens a session with the new database as the role that will own it, with no more privileges: the code executed
// there is untrusted.
type Target func(context.Context) (*pgx.Conn, error)

// bounded opens the target with bounds on its messages: untrusted functions may write them.
func (open Target) bounded(ctx context.Context) (*pgx.Conn, error) {
	conn, err := open(ctx)
	if err == nil {
		conn.PgConn().Frontend().SetMaxBodyLen(largestMessage)
	}
	return conn, err
}

// targetSession initializes a session that executes entries, as pg_restore does: definitions qualify every name, and
// function bodies may name objects that are created later. A statement whose import has been cancelled ends soon, with its locks.
const targetSession = `set search_path = ''; set check_function_bodies = off; set xmloption = content; set client_min_messages = warning;
	set row_security = off; set default_table_access_method = heap; set default_tablespace = ''; set synchronous_commit = off;
	set client_connection_check_interval = '200ms'`

// executor executes untrusted SQL in a session of its own. The SQL may change the session's state, because nothing else
// runs there.
type executor struct {
	session *pgconn.HijackedConn
}

func openExecutor(ctx context.Context, open Target) (*executor, error) {
	conn, err := open(ctx)
	if err != nil {
		return nil, err
	}
	session, err := takeOver(ctx, conn.PgConn())
	if err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	x := &executor{session: session}
	if err := x.execute(ctx, targetSession); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

func (x *executor) close() { _ = x.session.Conn.Close() }

var errLeftOpen = errors.New("its definition leaves a transaction open")

// execute runs the statements of one entry as one query. A *pgconn.PgError is the server's refusal; after any other
// error the session is unusable.
func (x *executor) execute(ctx context.Context, sql string) error {
	if strings.ContainsRune(sql, 0) {
		return &pgconn.PgError{Severity: "ERROR", Code: "22021", Message: "the definition has a zero byte"}
	}
	stop := context.AfterFunc(ctx, func() { _ = x.session.Conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	status, refusal, err := x.query(sql)
	if err == nil && status != 'I' {
		refusal = errors.Join(refusal, errLeftOpen)
		_, _, err = x.query("rollback")
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("execute: %w", err)
	default:
		return refusal
	}
}

// query does not use pgconn, which would wait forever on a COPY FROM STDIN, which no legitimate definition contains.
func (x *executor) query(sql string) (status byte, refusal, err error) {
	frontend := x.session.Frontend
	frontend.SendQuery(&pgproto3.Query{String: sql})
	if err := frontend.Flush(); err != nil {
		return 0, nil, err
	}
	for {
		message, err := frontend.Receive()
		if err != nil {
			return 0, nil, err
		}
		switch m := message.(type) {
		case *pgproto3.ErrorResponse:
			if refusal == nil {
				refusal = pgconn.ErrorResponseToPgError(m)
			}
		case *pgproto3.CopyInResponse:
			frontend.Send(&pgproto3.CopyFail{Message: "a definition has no data"})
			if err := frontend.Flush(); err != nil {
				return 0, refusal, err
			}
		case *pgproto3.ReadyForQuery:
			return m.TxStatus, refusal, nil
		}
	}
}

// fatal reports whether err prevents the import from going on: the cause is not one object, but a connection, a server
// or its disk.
func fatal(err error) bool {
	if _, ok := errors.AsType[sessionError](err); ok {
		return true
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return !errors.Is(err, errLeftOpen) && !errors.Is(err, errReplaced)
	}
	if pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC" { // the session has ended
		return true
	}
	switch pg.Code[:min(2, len(pg.Code))] {
	case "53": // insufficient resources: memory and temp_file_limit bound one statement
		return pg.Code != "53200" && pg.Code != "53400"
	case "58": // system error
		return true
	case "57": // operator intervention, except a cancelled statement
		return pg.Code != "57014"
	default:
		return false
	}
}
