package postgres

import (
	"context"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// logins are processes of a server that were not yet sessions when they were
// listed. A client that stops in the middle of logging in has one for up to twice
// authentication_timeout, with the access rules in force when it connected and
// the password in force when the server asked for it. If it completes later, it
// is a session that no change has ended.
type logins struct {
	dir   string // the data directory
	pids  []int
	asked time.Time // when they are asked to end
}

// loginGrace is how long a login may take to become a session, so that logins in
// progress are not ended needlessly.
const loginGrace = time.Second

// incompleteLogins lists the processes of conn's server that may be incomplete logins.
func incompleteLogins(ctx context.Context, conn *pgx.Conn) (*logins, error) {
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

// forgetGone drops processes that have ended, and the logger, which had no title yet if
// the server had just started: it never becomes a session, and ignores SIGTERM.
func (l *logins) forgetGone() {
	l.pids = slices.DeleteFunc(l.pids, func(pid int) bool { return !servesDir(pid, l.dir) || isLogger(pid) })
}

// end drops processes that are now known as sessions, or as anything else, and
// asks the others to end. From PostgreSQL 18 on, a login is known before it is
// complete.
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
			_ = syscall.Kill(pid, syscall.SIGTERM) // an error means that it has ended
		}
	}
	return nil
}
