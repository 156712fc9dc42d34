package importer

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// worker does steps one after the other, with sessions of its own that are
// opened when they are first needed.
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

// ends returns the sessions between which data is copied.
func (w *worker) ends(ctx context.Context) (source, target *pgx.Conn, err error) {
	if source, err = w.reader(ctx); err != nil {
		return nil, nil, err
	}
	target, err = w.writer(ctx)
	return source, target, err
}

// reader returns a session with the source in the snapshot. One that a refusal
// has thrown out of it enters it again.
func (w *worker) reader(ctx context.Context) (_ *pgx.Conn, err error) {
	if w.source != nil && !w.source.IsClosed() && w.source.PgConn().TxStatus() == 'T' {
		return w.source, nil
	}
	if w.source != nil && !w.source.IsClosed() {
		if err := w.session.enter(ctx, w.source); err != nil {
			return nil, sourceError{err}
		}
		return w.source, nil
	}
	// The server may not have noticed yet that pg_dump's session has ended.
	for range 10 {
		if w.source, err = w.session.reader(ctx); !isFull(err) {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return w.source, err
}

// isFull reports whether a server has no connection left.
func isFull(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "53300"
}

func (w *worker) writer(ctx context.Context) (_ *pgx.Conn, err error) {
	if w.target != nil && !w.target.IsClosed() {
		return w.target, nil
	}
	if w.target, err = w.open(ctx); err != nil {
		return nil, err
	}
	_, err = w.target.Exec(ctx, "set synchronous_commit = off")
	return w.target, err
}

// tries is how often a definition is executed that runs into a deadlock.
const tries = 5

// execute executes a definition in the target.
func (w *worker) execute(ctx context.Context, sql string) (err error) {
	if w.executor == nil {
		if w.executor, err = openExecutor(ctx, w.open); err != nil {
			return err
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
