package postgres

import (
	"context"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// logins are processes of a server that were not yet sessions when they were
// listed. A client that stops in the middle of logging in has one for as long as
// authentication_timeout, twice: with the access rules that
// were in force when it connected, and with the password as it was when it was asked
// for it. Finished later, it is a session that no change has ended.
type logins struct {
	dir   string // the data directory
	pids  []int
	asked time.Time // when they are asked to end
}

// loginGrace is how long a login may take to be a session: one that is
// under way is not ended for nothing.
const loginGrace = time.Second

// halfDone lists what is being logged in to the server of conn.
func halfDone(ctx context.Context, conn *pgx.Conn) (*logins, error) {
	l := &logins{asked: time.Now().Add(loginGrace)}
	if err := conn.QueryRow(ctx, "select current_setting('data_directory')").Scan(&l.dir); err != nil {
		return nil, err
	}
	file, err := readPIDFile(l.dir)
	if err != nil {
		return nil, err
	}
	for _, pid := range processesOf(l.dir) {
		if pid != file.pid && !isLogger(pid) {
			l.pids = append(l.pids, pid)
		}
	}
	return l, nil
}

func (l *logins) forgetGone() {
	l.pids = slices.DeleteFunc(l.pids, func(pid int) bool { return !servesDir(pid, l.dir) })
}

// end forgets those that are known as sessions, or as anything else, and asks
// the others to end. From PostgreSQL 18 on, a login is known before it is done.
func (l *logins) end(ctx context.Context, conn *pgx.Conn) error {
	if len(l.pids) == 0 {
		return nil
	}
	rows, _ := conn.Query(ctx, `select pid from pg_stat_activity
		where usesysid is not null or backend_type <> 'client backend'`)
	known, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return err
	}
	l.pids = slices.DeleteFunc(l.pids, func(pid int) bool { return slices.Contains(known, pid) })
	if time.Now().After(l.asked) {
		for _, pid := range l.pids {
			_ = syscall.Kill(pid, syscall.SIGTERM) // it is gone when that fails
		}
	}
	return nil
}
