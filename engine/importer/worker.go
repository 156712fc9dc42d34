package importer

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// worker runs steps one after the other, with sessions of its own that it opens when it first needs them.
type worker struct {
	session *Session
	open    Target

	source   *pgx.Conn // in the snapshot
	target   *pgx.Conn
	executor *executor
}

func (w *worker) close(ctx context.Context) {
	for _, conn := range []*pgx.Conn{w.source, w.target} {
		if conn != nil {
			_ = conn.Close(ctx)
		}
	}
	if w.executor != nil {
		w.executor.close()
	}
}

// ends returns the two sessions that data is copied between.
func (w *worker) ends(ctx context.Context) (source, target *pgx.Conn, err error) {
	if source, err = w.reader(ctx); err != nil {
		return nil, nil, err
	}
	target, err = w.writer(ctx)
	return source, target, err
}

// sessionError says that a worker could not open a session. Another worker may have one.
type sessionError struct{ error }

func (e sessionError) Unwrap() error { return e.error }

// reader returns a session with the source that sees the snapshot. If an error aborted the session's transaction, it
// enters the snapshot again.
func (w *worker) reader(ctx context.Context) (*pgx.Conn, error) {
	if w.source != nil && !w.source.IsClosed() {
		if w.source.PgConn().TxStatus() != 'T' {
			if err := w.session.enter(ctx, w.source); err != nil {
				return nil, sessionError{sourceError{err}}
			}
		}
		return w.source, nil
	}
	source, err := w.session.reader(ctx)
	if err != nil {
		return nil, sessionError{err}
	}
	w.source = source
	return source, nil
}

func (w *worker) writer(ctx context.Context) (*pgx.Conn, error) {
	if w.target != nil && !w.target.IsClosed() {
		return w.target, nil
	}
	target, err := w.open(ctx)
	if err != nil {
		return nil, sessionError{err}
	}
	w.target = target
	if _, err = target.Exec(ctx, "set synchronous_commit = off"); err != nil {
		return nil, sessionError{err}
	}
	return target, nil
}

// tries is how often a definition that runs into a deadlock is executed.
const tries = 5

// execute executes a definition in the target.
func (w *worker) execute(ctx context.Context, sql string) (err error) {
	if w.executor == nil {
		if w.executor, err = openExecutor(ctx, w.open); err != nil {
			return sessionError{err}
		}
	}
	for range tries {
		err = w.executor.execute(ctx, sql)
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "40P01" {
			return err
		}
	}
	return err
}
