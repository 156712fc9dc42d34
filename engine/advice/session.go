package advice

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// Check is a check that queries a tenant's database.
type Check struct {
	Name string
	Run  func(context.Context, *Session) ([]model.Recommendation, error)
}

// DatabaseChecks returns every check that queries a database.
func DatabaseChecks() []Check {
	return []Check{
		{"unused_indexes", unusedIndexes},
		{"duplicate_indexes", duplicateIndexes},
		{"missing_indexes", missingIndexes},
		{"foreign_keys", unindexedForeignKeys},
		{"primary_keys", missingPrimaryKeys},
		{"dead_rows", deadRows},
		{"bloat", bloat},
		{"wraparound", wraparound},
		{"connections", connections},
		{"idle_transactions", idleTransactions},
		{"prepared_transactions", preparedTransactions},
		{"cache", cache},
		{"slow_statements", slowStatements},
		{"row_level_security", rowSecurity},
		{"extensions", extensionVersions},
	}
}

// Session is one session of checks in a tenant's database.
type Session struct {
	Now      time.Time
	Limits   Thresholds
	Database model.Database
	// Conn is the superuser's connection to the tenant's database.
	Conn *pgx.Conn
	// Statements are the database's statements in pg_stat_statements, nil if that is not
	// loaded.
	Statements []Statement
	// Memory holds the counters of earlier sessions.
	Memory *Memory
}

// maxFindings limits the findings of one check in one database.
const maxFindings = 20

// maxTables limits the number of tables whose counters are remembered.
const maxTables = 5000

// list returns the rows of a check's query, at most maxFindings. %s in the query stands
// for the condition that the table t in the schema n is the tenant's.
func list[T any](ctx context.Context, s *Session, query string, args ...any) ([]T, error) {
	return listUpTo[T](ctx, s, maxFindings, query, args...)
}

func listUpTo[T any](ctx context.Context, s *Session, limit int, query string, args ...any) ([]T, error) {
	rows, err := s.Conn.Query(ctx, fmt.Sprintf(query, tenantsTable)+fmt.Sprintf(" limit %d", limit), args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}

// each turns each row of a check's query into a recommendation, unless the query failed.
func each[T any](rows []T, err error, about func(T) model.Recommendation) (found []model.Recommendation, _ error) {
	for _, row := range rows {
		found = append(found, about(row))
	}
	return found, err
}

// tenantsTable excludes the tables of PostgreSQL and of extensions.
const tenantsTable = `n.nspname not like 'pg\_%' and n.nspname <> 'information_schema' and t.relpersistence <> 't'
	and not exists (select from pg_depend e where e.classid = 'pg_class'::regclass and e.objid = t.oid and e.deptype = 'e')`

// table identifies the table of a finding.
type table struct{ Schema, Table string }

func (t table) String() string { return t.Schema + "." + t.Table }

// sql returns the table's name as SQL.
func (t table) sql() string { return pgx.Identifier{t.Schema, t.Table}.Sanitize() }

// quoteText returns a text as an SQL literal.
func quoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// about starts a performance recommendation; object distinguishes it from others with its
// code.
func (s *Session) about(code string, severity model.Severity, object, title, message string) model.Recommendation {
	return model.Recommendation{
		Code: code, Severity: severity, Category: model.CategoryPerformance, Title: title, Message: message,
		Resource: resource(s.Database), Object: object,
	}
}
