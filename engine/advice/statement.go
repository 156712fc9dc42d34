package advice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Statement is one statement in pg_stat_statements.
type Statement struct {
	ID      int64
	Text    string // with $1, $2, … in place of constants
	Cut     bool   // whether Text is only the beginning
	Calls   float64
	TotalMS float64
}

// maxStatements limits how many statements are read, those with the longest total time
// first.
const maxStatements = 200

// longestText limits the length of a statement's text, in characters.
const longestText = 2000

// Statements returns the pg_stat_statements of a database. conn is the superuser's
// connection to the database postgres, where the extension is installed. It reads only
// queries and row changes, because the text of all other statements is stored as sent and
// may contain a password.
func Statements(ctx context.Context, conn *pgx.Conn, database string) ([]Statement, error) {
	var loaded bool
	if err := conn.QueryRow(ctx, `select exists (select from pg_extension where extname = 'pg_stat_statements')`).Scan(&loaded); err != nil || !loaded {
		return nil, err
	}
	rows, err := conn.Query(ctx, fmt.Sprintf(`
		select s.queryid, left(s.query, %[2]d), length(s.query) > %[2]d, s.calls::float8, s.total_exec_time
		from public.pg_stat_statements s join pg_database d on d.oid = s.dbid join pg_roles r on r.oid = s.userid
		where d.datname = $1 and r.rolname <> current_user and s.toplevel
			and s.query ~* '^\s*(select|insert|update|delete|with|merge)\y'
		order by s.total_exec_time desc limit %[1]d`, maxStatements, longestText), database)
	if err != nil {
		return nil, fmt.Errorf("read statements: %w", err)
	}
	statements, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Statement])
	if err != nil {
		return nil, fmt.Errorf("read statements: %w", err)
	}
	return statements, nil
}
