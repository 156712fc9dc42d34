package postgres

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"
)

// TerminateSessions ends the tenants' sessions in the database, but for those
// of the backends in except, and returns how many it ended once all of them
// are gone. Sessions that open meanwhile are ended, too: who must stay out is
// first taken out of the rules.
func TerminateSessions(ctx context.Context, conn *pgx.Conn, database string, except ...int) (int, error) {
	keep := make([]int32, len(except))
	for n, pid := range except {
		keep[n] = int32(pid)
	}
	ended := map[int32]bool{}
	for {
		pids, err := terminate(ctx, conn, database, keep)
		if err != nil {
			return len(ended), fmt.Errorf("end sessions: %w", err)
		}
		if len(pids) == 0 {
			return len(ended), nil
		}
		for _, pid := range pids {
			ended[pid] = true
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return len(ended), fmt.Errorf("wait for sessions to end: %w", err)
		}
	}
}

// terminate asks the sessions to end and returns those that have not yet.
func terminate(ctx context.Context, conn *pgx.Conn, database string, keep []int32) ([]int32, error) {
	rows, err := conn.Query(ctx, `select pid from (
			select pid, pg_terminate_backend(pid) from pg_stat_activity
			where datname = $1 and backend_type = 'client backend' and usename <> $2
			and pid <> pg_backend_pid() and pid <> all($3)) t`, database, Superuser, keep)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int32])
}

// Usage is what an instance's database takes and who is connected to it.
type Usage struct {
	SizeBytes   int64
	Connections int // tenants' sessions, the sum of the two below
	SSL, NonSSL int
	Commits     int64 // since the server's statistics began
	// WALLag is how far behind the slowest receiver of WAL is, in bytes.
	WALLag int64
}

// Stats measures the database. conn is the superuser's, in the database
// postgres.
func Stats(ctx context.Context, conn *pgx.Conn, database string) (Usage, error) {
	var u Usage
	err := conn.QueryRow(ctx, `select pg_database_size($1::name),
		(select xact_commit from pg_stat_database where datname = $1),
		count(*) filter (where s.ssl), count(*) filter (where not s.ssl),
		coalesce((select max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) from pg_replication_slots
			where slot_type = 'physical' and not temporary), 0)::bigint
		from pg_stat_activity a join pg_stat_ssl s using (pid)
		where a.datname = $1 and a.backend_type = 'client backend' and a.usename <> $2`,
		database, Superuser).Scan(&u.SizeBytes, &u.Commits, &u.SSL, &u.NonSSL, &u.WALLag)
	if err != nil {
		return Usage{}, fmt.Errorf("measure database: %w", err)
	}
	u.Connections = u.SSL + u.NonSSL
	return u, nil
}

// Session is one of the tenants' sessions.
type Session struct {
	PID     int
	Address netip.Addr // where it comes from
}

// Sessions lists the tenants' sessions in the database. conn is the
// superuser's, in the database postgres.
func Sessions(ctx context.Context, conn *pgx.Conn, database string) ([]Session, error) {
	rows, err := conn.Query(ctx, `select pid, host(client_addr) from pg_stat_activity
		where datname = $1 and backend_type = 'client backend' and usename <> $2 and client_addr is not null`,
		database, Superuser)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	sessions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Session, error) {
		var s Session
		var address string
		if err := row.Scan(&s.PID, &address); err != nil {
			return s, err
		}
		s.Address, err = netip.ParseAddr(address)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return sessions, nil
}
