package importer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// transfer is the copy of one table's rows.
type transfer struct {
	table  table
	weight float64
	root   pgx.Identifier // receives the rows instead of the table; nil for the table itself
	rows   atomic.Int64
	bytes  atomic.Int64
}

// share returns how much of the table is copied, according to the source's statistics.
func (t *transfer) share() float64 {
	if t.table.rows <= 0 {
		return 0
	}
	return min(float64(t.rows.Load())/t.table.rows, 0.99)
}

// Write counts the rows that the source sends: in the text format a line is a row.
func (t *transfer) Write(p []byte) (int, error) {
	t.rows.Add(int64(bytes.Count(p, []byte{'\n'})))
	t.bytes.Add(int64(len(p)))
	return len(p), nil
}

// pipeBuffer is how much one connection hands to the other at a time.
const pipeBuffer = 256 << 10

// flow copies a table's rows from the source to the target, and returns their number as the source's server reports it
// for the snapshot. The target's transaction truncates the table first, so that no other transaction can see it and
// PostgreSQL writes the rows frozen: nothing has to revisit them. A root is not truncated: it already has other rows.
func (t *transfer) flow(ctx context.Context, source, target *pgx.Conn) (rows int64, err error) {
	if _, err := target.Exec(ctx, "begin"); err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil && !target.IsClosed() {
			_, rollbackErr := target.Exec(ctx, "rollback")
			err = errors.Join(err, rollbackErr)
		}
	}()
	if t.root == nil {
		if _, err := target.Exec(ctx, "truncate only "+t.table.sanitized()); err != nil {
			return 0, err
		}
	}
	if err := lockNamed(ctx, source, t.table); err != nil {
		return 0, sourceError{err}
	}
	sent, received, err := t.pipe(ctx, source, target)
	if err != nil {
		return 0, err
	}
	if sent != received {
		return 0, fmt.Errorf("the source sent %d rows and %d arrived", sent, received)
	}
	_, err = target.Exec(ctx, "commit")
	return sent, err
}

// pipe runs both ends of the copy. When one end fails, the other ends, too; the error is from the end that failed
// first.
func (t *transfer) pipe(ctx context.Context, source, target *pgx.Conn) (sent, received int64, err error) {
	r, w := io.Pipe()
	columns := t.columns()
	into := "copy " + t.table.sanitized() + columns + " from stdin with (freeze)"
	if t.root != nil {
		into = "copy " + t.root.Sanitize() + columns + " from stdin"
	}
	arrived := make(chan error, 1)
	go func() {
		tag, err := target.PgConn().CopyFrom(ctx, r, into)
		received = tag.RowsAffected()
		_ = r.CloseWithError(errors.Join(errOtherEnd, err))
		arrived <- err
	}()
	buffer := bufio.NewWriterSize(w, pipeBuffer)
	expect(source, copyBounds)
	defer expect(source, catalogBounds)
	tag, sendErr := source.PgConn().CopyTo(ctx, io.MultiWriter(t, buffer), "copy "+t.table.sanitized()+columns+" to stdout")
	if sendErr == nil {
		sendErr = buffer.Flush()
	}
	_ = w.CloseWithError(sendErr) // nil ends the data
	receiveErr := <-arrived
	if sendErr != nil && !errors.Is(sendErr, errOtherEnd) {
		return 0, 0, sourceError{sendErr}
	}
	return tag.RowsAffected(), received, receiveErr
}

// errOtherEnd says that one end of a copy stopped because the other did.
var errOtherEnd = errors.New("the other end of the copy stopped")

// sourceError marks an error that occurred in the source.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

// columns lists the columns that hold data; a table may have none.
func (t *transfer) columns() string {
	if t.table.columns == "" {
		return ""
	}
	return " (" + t.table.columns + ")"
}
