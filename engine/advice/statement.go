package advice

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/postgres"
)

// Statement is one statement in pg_stat_statements.
type Statement struct {
	ID      int64
	Text    string // with $1, $2, … in place of constants
	Cut     bool   // whether Text is only the beginning
	Calls   float64
	TotalMS float64
	User    string
	MaxMS   float64
	Rows    int64
	// Hits and Reads are the blocks that were found in shared buffers and that were not.
	Hits, Reads int64
	TempWritten int64 // blocks of temporary files
}

// MeanMS returns the average time of a call.
func (s Statement) MeanMS() float64 {
	if s.Calls == 0 {
		return 0
	}
	return s.TotalMS / s.Calls
}

// HitRatio returns which part of the blocks was found in shared buffers, and false for a
// statement that read none.
func (s Statement) HitRatio() (ratio float64, known bool) {
	if s.Hits+s.Reads == 0 {
		return 0, false
	}
	return float64(s.Hits) / float64(s.Hits+s.Reads), true
}

// MaxStatements limits how many statements are read.
const MaxStatements = 200

// longestText limits the length of a statement's text, in characters.
const longestText = 2000

// StatementOrder is what statements are sorted by, the largest first.
type StatementOrder string

// The orders.
const (
	ByTotalTime StatementOrder = "total_time"
	ByMeanTime  StatementOrder = "mean_time"
	ByCalls     StatementOrder = "calls"
	ByRows      StatementOrder = "rows"
)

// column returns the expression to sort by.
func (o StatementOrder) column() string {
	switch o {
	case ByMeanTime:
		return "s.mean_exec_time"
	case ByCalls:
		return "s.calls"
	case ByRows:
		return "s.rows"
	default:
		return "s.total_exec_time"
	}
}

// normalised is the condition for statements whose constants pg_stat_statements replaces:
// queries and row changes of tenants, whose roles never begin with "holdfast" as those of the appliance and its exports do.
// The text of all others is stored as sent and may contain a password.
const normalised = `r.rolname <> current_user and r.rolname !~ '^holdfast' and s.toplevel and s.query ~* '^\s*(select|insert|update|delete|with|merge)\y'`

// CountsStatements reports whether pg_stat_statements is there. conn is the superuser's
// connection to the database postgres, where the extension is installed.
func CountsStatements(ctx context.Context, conn *pgx.Conn) (counts bool, err error) {
	err = conn.QueryRow(ctx, `select exists (select from pg_extension where extname = 'pg_stat_statements')
		and current_setting('shared_preload_libraries') like '%pg_stat_statements%'`).Scan(&counts)
	return counts, err
}

// read runs a query of pg_stat_statements. The view cannot be read at all while it has a text that is not UTF-8, which roles can
// send in a database of another encoding, beside the tenant's. Nothing shows those statements, so they are forgotten then.
func read(ctx context.Context, conn *pgx.Conn, query func() error) error {
	err := query()
	for tries := 0; postgres.IsNotUTF8(err) && tries < 3; tries++ { // such a role may be sending more
		if _, err := conn.Exec(ctx, `select public.pg_stat_statements_reset(0, s.dbid, 0) from (select distinct dbid from public.pg_stat_statements(false)) s
			where s.dbid not in (select oid from pg_database where encoding = pg_char_to_encoding('UTF8'))`); err != nil {
			return fmt.Errorf("forget statements that are not UTF-8: %w", err)
		}
		err = query()
	}
	return err
}

// Statements returns the pg_stat_statements of a database, at most [MaxStatements]; none if it is not loaded. conn is
// as for [CountsStatements].
func Statements(ctx context.Context, conn *pgx.Conn, database string, order StatementOrder) ([]Statement, error) {
	if counts, err := CountsStatements(ctx, conn); err != nil || !counts {
		return nil, err
	}
	query := fmt.Sprintf(`
		select s.queryid, left(s.query, %[2]d), length(s.query) > %[2]d, s.calls::float8, s.total_exec_time,
			r.rolname::text, s.max_exec_time, s.rows, s.shared_blks_hit, s.shared_blks_read, s.temp_blks_written
		from public.pg_stat_statements s join pg_database d on d.oid = s.dbid join pg_roles r on r.oid = s.userid
		where d.datname = $1 and s.queryid is not null and %[3]s
		order by %[4]s desc, s.queryid limit %[1]d`, MaxStatements, longestText, normalised, order.column())
	var statements []Statement
	err := read(ctx, conn, func() (err error) {
		rows, _ := conn.Query(ctx, query, database) // CollectRows returns the error
		statements, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Statement])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read statements: %w", err)
	}
	return statements, nil
}

// MaxExplained limits the length of a statement that is explained, in bytes.
const MaxExplained = 64 << 10

// StatementText returns the whole text of a statement, and pgx.ErrNoRows if there is none or it is longer than
// [MaxExplained].
func StatementText(ctx context.Context, conn *pgx.Conn, database string, id int64) (text string, err error) {
	if counts, err := CountsStatements(ctx, conn); err != nil || !counts {
		return "", err
	}
	query := `select s.query
		from public.pg_stat_statements s join pg_database d on d.oid = s.dbid join pg_roles r on r.oid = s.userid
		where d.datname = $1 and s.queryid = $2 and octet_length(s.query) <= $3 and ` + normalised + ` limit 1`
	err = read(ctx, conn, func() error { return conn.QueryRow(ctx, query, database, id, MaxExplained).Scan(&text) })
	return text, err
}

// ResetStatements forgets the statements of a database. It returns the number of those it forgot.
func ResetStatements(ctx context.Context, conn *pgx.Conn, database string) (forgotten int, err error) {
	err = conn.QueryRow(ctx, `select count(s.queryid)::int from public.pg_stat_statements(false) s join pg_database d on d.oid = s.dbid where d.datname = $1`, database).Scan(&forgotten)
	if err == nil {
		_, err = conn.Exec(ctx, `select public.pg_stat_statements_reset(0, d.oid, 0) from pg_database d where d.datname = $1`, database)
	}
	if err != nil {
		return 0, fmt.Errorf("reset statements: %w", err)
	}
	return forgotten, nil
}

// StatementsSince returns since when statements are counted: the reset of all of them. A reset of one database's leaves no
// time.
func StatementsSince(ctx context.Context, conn *pgx.Conn) (since time.Time, err error) {
	err = conn.QueryRow(ctx, `select stats_reset from public.pg_stat_statements_info`).Scan(&since)
	return since, err
}
