package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// roleCatalogs are the catalogs that hold what tenants may change about their
// roles and database.
const roleCatalogs = "pg_authid, pg_db_role_setting, pg_database, pg_auth_members"

// runAlone is run under a lock on roles and databases: of two concurrent changes
// one fails, and a tenant's open transaction would block this one. It ends those
// that still do after the first attempt, and no others.
func runAlone(ctx context.Context, conn *pgx.Conn, statements []string) error {
	statements = append([]string{
		"SET LOCAL lock_timeout = '100ms'",
		"LOCK TABLE " + roleCatalogs + " IN SHARE ROW EXCLUSIVE MODE",
	}, statements...)
	err := run(ctx, conn, statements)
	if !isLockTimeout(err) {
		return err
	}
	return inOtherDatabase(ctx, conn, "postgres", func(observer *pgx.Conn) error {
		for isLockTimeout(err) {
			err = runUnblocked(ctx, conn, observer, statements)
		}
		return err
	})
}

func isLockTimeout(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "55P03" // lock_not_available
}

// runUnblocked is run while the observer, another session of the superuser, ends
// what the statements wait for. Only while they wait does the server say what
// that is: a GRANT leaves no lock but that of its transaction.
func runUnblocked(ctx context.Context, conn, observer *pgx.Conn, statements []string) error {
	var running sync.WaitGroup
	defer running.Wait()
	done := make(chan error, 1)
	running.Go(func() { done <- run(ctx, conn, statements) })
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(10 * time.Millisecond):
			if err := endBlockers(ctx, observer, conn.PgConn().PID()); err != nil {
				return err
			}
		}
	}
}

// endBlockers ends the tenants' sessions that a session waits for, and rolls back
// the prepared transactions: these belong to no session and survive a restart of
// the server.
func endBlockers(ctx context.Context, conn *pgx.Conn, waiting uint32) error {
	_, err := conn.Exec(ctx, `select pg_terminate_backend(a.pid) from unnest(pg_blocking_pids($1::int)) blocking
		join pg_stat_activity a on a.pid = blocking where a.usename <> $2`, waiting, Superuser)
	if err != nil {
		return fmt.Errorf("end sessions that change roles: %w", err)
	}
	if err := rollBackWhere(ctx, conn, blockingPrepared, waiting); err != nil {
		return fmt.Errorf("roll back prepared transactions that change roles: %w", err)
	}
	return nil
}

// blockingPrepared selects the prepared transactions that the session $1 waits
// for. The two weakest locks block only who waits for the strongest one.
const blockingPrepared = `p.transaction in (
	select own.transactionid from pg_locks waits
	join pg_locks held on held.pid is null
		and (held.locktype, held.database, held.relation, held.transactionid, held.classid, held.objid, held.objsubid) is not distinct from
			(waits.locktype, waits.database, waits.relation, waits.transactionid, waits.classid, waits.objid, waits.objsubid)
		and (waits.mode = 'AccessExclusiveLock' or held.mode not in ('AccessShareLock', 'RowShareLock'))
	join pg_locks own on own.virtualtransaction = held.virtualtransaction and own.locktype = 'transactionid'
	where waits.pid = $1::int and not waits.granted)`
