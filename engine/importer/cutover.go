package importer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
	"holdfast/internal/ctxio"
)

// CaughtUp writes a mark into the source's log, after everything that was committed there, and waits until the new
// database has confirmed everything before it. It fails while the source has transactions that may still be committed.
func (f *Follower) CaughtUp(ctx context.Context, patience time.Duration) error {
	conn, err := f.session(ctx)
	if err != nil {
		return err
	}
	if _, err := f.slot(ctx); err != nil {
		return err
	}
	if err := f.awaitTransactions(ctx, conn); err != nil {
		return err
	}
	mark, err := writeMark(ctx, conn)
	if err != nil {
		return f.explain(ctx, fmt.Errorf("write a mark: %w", err))
	}
	for began := time.Now(); ; {
		state, err := f.slot(ctx)
		if err != nil {
			return err
		}
		f.record(state)
		if state.Confirmed >= mark {
			return nil
		}
		if time.Since(began) > patience {
			return model.Errorf(model.CodeConflict, "the new database has not caught up within %v: %d bytes of the source's log are left; "+
				"let the source write again, and cut over when the lag is small", patience, mark-state.Confirmed)
		}
		if err := ctxio.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// The marks. A logical message is flushed by its commit. Where the user may not write one, the end of the log is the mark,
// and the commit of a transaction number follows it, which the server flushes a moment later.
const (
	messageMark = "select pg_wal_lsn_diff(pg_logical_emit_message(true, 'holdfast', 'cutover'), '0/0')::int8"
	commitMark  = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::int8 from (select txid_current()) x"
)

// writeMark writes a record that changes nothing after everything that was committed, and returns a position before its end.
func writeMark(ctx context.Context, conn *pgx.Conn) (int64, error) {
	mark, err := writeMarkBy(ctx, conn, messageMark)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" {
		return writeMarkBy(ctx, conn, commitMark)
	}
	return mark, err
}

func writeMarkBy(ctx context.Context, conn *pgx.Conn, query string) (mark int64, err error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadWrite})
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "set local synchronous_commit = local"); err != nil {
		return 0, err
	}
	if err := tx.QueryRow(ctx, query).Scan(&mark); err != nil {
		return 0, err
	}
	return mark, tx.Commit(ctx)
}

// Carry copies what does not follow and compares both sides, once nobody writes at the source: the positions of
// sequences, and as many tables' numbers of rows as it can count in the time. It fails if rows differ.
func (f *Follower) Carry(ctx context.Context, patience time.Duration) error {
	conn, err := f.session(ctx)
	if err != nil {
		return err
	}
	c := f.copying(conn)
	defer c.close(ctx)
	if c.inventory.sequences, err = listSequences(ctx, conn, c.number); err != nil {
		return f.explain(ctx, err)
	}
	for _, do := range []func(context.Context) error{c.readSequences, c.setSequences, c.verifySequences, c.awaitDurable} {
		if err := do(ctx); err != nil {
			return c.trouble(ctx, err)
		}
	}
	f.account.Say(model.ImportInfo, model.Count(len(c.inventory.sequences), "sequence")+" carried over")
	return c.compareCounts(ctx, patience)
}

// durableCommit is a commit that waits for the disk, and so for all commits before it.
const durableCommit = "begin; set local synchronous_commit = on; select pg_catalog.pg_logical_emit_message(true, 'holdfast', 'cutover'); commit"

// awaitDurable makes durable what the sessions in the new database have committed, which does not wait for the disk. It
// asks each of them: if the server has ended since, so has the session, and what it did may be lost.
func (c *copying) awaitDurable(ctx context.Context) error {
	for _, w := range c.workers {
		if w.target != nil {
			if _, err := w.target.Exec(ctx, durableCommit, pgx.QueryExecModeSimpleProtocol); err != nil {
				return sessionError{fmt.Errorf("make the cutover durable: %w", err)}
			}
		}
		if w.executor != nil {
			if err := w.execute(ctx, durableCommit); err != nil {
				return sessionError{fmt.Errorf("make the cutover durable: %w", err)}
			}
		}
	}
	return nil
}

func (f *Follower) copying(conn *pgx.Conn) *copying {
	return f.Plan.copying(&Session{source: f.source, account: f.account, conn: conn}, f.Owner, f.Target)
}

// Finish does what comes last in every copy, and records what has not followed. It needs no source, and may be repeated.
func (f *Follower) Finish(ctx context.Context) error {
	c := f.copying(nil)
	defer c.close(ctx)
	for _, do := range []func(context.Context) error{
		c.createAll(enableTrigger), c.createAll("ROW SECURITY"), c.fillEmptyViews, c.createAll("ACL"), c.createAll("DEFAULT ACL"),
		func(ctx context.Context) error { return c.setComment(ctx, f.Plan.Comment) },
		func(ctx context.Context) error { return c.setSettings(ctx, f.Plan.Settings) },
		c.awaitDurable,
	} {
		if err := do(ctx); err != nil {
			return c.trouble(ctx, err)
		}
	}
	for _, t := range c.inventory.tables {
		if !t.published {
			f.account.flaw("TABLE DATA "+t.String(), errors.New("the publication does not have it: its rows are those of the copy, without later changes"))
		}
	}
	if n := f.Plan.LargeObjects; n > 0 {
		f.account.flaw("LARGE OBJECTS", fmt.Errorf("%s: as they were copied, without later changes", model.Count(n, "large object")))
	}
	return nil
}
