package advice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Statement is what pg_stat_statements has of one statement.
type Statement struct {
	ID      int64
	Text    string // with $1, $2, … for its constants
	Cut     bool   // whether that is only its beginning
	Calls   float64
	TotalMS float64
}

// maxStatements bounds how many statements are looked at, those that took
// longest first.
const maxStatements = 200

// longestText is how many characters of a statement are looked at.
const longestText = 2000

// Statements returns what pg_stat_statements has of a database. conn is the
// superuser's, in the database postgres, where the extension is. Only queries
// and changes of rows are read: of all other statements the text is kept as it
// was sent, and may hold a password.
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
