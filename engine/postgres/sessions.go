package postgres

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"
)

// ownRoles returns the appliance's roles; every other session is a tenant's.
func ownRoles() []string { return []string{Superuser, dumper} }

// TerminateSessions ends the tenants' sessions, in whatever database, except those from
// the networks in allow. It returns how many it ended, once all of them have
// ended. It also ends sessions that open meanwhile, and logins that were
// incomplete at the start ([incompleteLogins]). The caller must first remove excluded
// clients from the rules. conn is the superuser's, in the database postgres.
func TerminateSessions(ctx context.Context, conn *pgx.Conn, allow ...netip.Prefix) (int, error) {
	networks := make([]string, len(allow))
	for n, prefix := range allow {
		networks[n] = prefix.String()
	}
	return terminateWhere(ctx, conn, "(client_addr <<= any($2::text[]::inet[])) is not true", networks)
}

// TerminateClients is TerminateSessions for the sessions whose clients have one of the
// ports: those of a proxy differ in nothing else.
func TerminateClients(ctx context.Context, conn *pgx.Conn, ports []int32) (int, error) {
	return terminateWhere(ctx, conn, "client_port = any($2::int[])", ports)
}

// terminateWhere ends the sessions that a condition, whose argument is $2, selects.
func terminateWhere(ctx context.Context, conn *pgx.Conn, condition string, argument any) (int, error) {
	logins, err := incompleteLogins(ctx, conn)
	if err != nil {
		return 0, fmt.Errorf("list incomplete logins: %w", err)
	}
	ended := map[int32]bool{}
	for {
		logins.forgetGone() // first: a login that has become a session is ended as one
		pids, err := terminate(ctx, conn, condition, argument)
		if err != nil {
			return len(ended), fmt.Errorf("end sessions: %w", err)
		}
		for _, pid := range pids {
			ended[pid] = true
		}
		if err := logins.end(ctx, conn); err != nil {
			return len(ended), fmt.Errorf("end incomplete logins: %w", err)
		}
		if len(pids) == 0 && len(logins.pids) == 0 {
			return len(ended), nil
		}
		if err := sleep(ctx, 2*time.Millisecond); err != nil {
			return len(ended), fmt.Errorf("wait for sessions to end: %w", err)
		}
	}
}

// terminate asks the sessions to end and returns those that have not ended yet.
func terminate(ctx context.Context, conn *pgx.Conn, condition string, argument any) ([]int32, error) {
	rows, _ := conn.Query(ctx, `select pid from (
			select pid, pg_terminate_backend(pid) from pg_stat_activity
			where `+ofTenants+` and `+condition+`) t`, ownRoles(), argument)
	return pgx.CollectRows(rows, pgx.RowTo[int32])
}

// StatementTexts is where pg_stat_statements keeps the texts of all statements, below the data directory.
const StatementTexts = "pg_stat_tmp/pgss_query_texts.stat"

// Usage is the size of an instance's databases and the sessions in them.
type Usage struct {
	SizeBytes   int64 // of the tenant's database and those beside it
	Connections int   // tenants' sessions, the sum of the two below
	SSL, NonSSL int
	Commits     int64 // in the tenant's database, since the server's statistics began
	// Flushed is the position up to which the WAL is on disk.
	Flushed string
}

// Stats measures the tenant's database and those beside it. conn is the superuser's, in the database
// postgres.
func Stats(ctx context.Context, conn *pgx.Conn, database string) (Usage, error) {
	var u Usage
	err := conn.QueryRow(ctx, `select (select coalesce(sum(pg_database_size(oid)), 0)::bigint from pg_database where `+tenantMade+`),
		(select xact_commit from pg_stat_database where datname = $2),
		count(*) filter (where s.ssl), count(*) filter (where not s.ssl),
		pg_current_wal_flush_lsn()::text
		from pg_stat_activity a join pg_stat_ssl s using (pid)
		where `+ofTenants, ownRoles(), database).Scan(&u.SizeBytes, &u.Commits, &u.SSL, &u.NonSSL, &u.Flushed)
	if err != nil {
		return Usage{}, fmt.Errorf("measure database: %w", err)
	}
	u.Connections = u.SSL + u.NonSSL
	return u, nil
}
