package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Table is one of the tenant's tables with its row-level security.
type Table struct {
	Schema        string
	Name          string
	Owner         string
	RLSEnabled    bool
	RLSForced     bool
	EstimatedRows int64 // -1 if PostgreSQL has not counted yet
	Policies      []Policy

	oid     uint32
	foreign bool // has no row-level security
}

// Policy is one row-level security policy, as pg_policies shows it.
type Policy struct {
	Name       string
	Command    string // "ALL", "SELECT", "INSERT", "UPDATE" or "DELETE"
	Permissive bool
	Roles      []string // "public" for all
	Using      *string  // truncated with … if it is long, as is WithCheck
	WithCheck  *string
}

// Limits on what is read of a tenant's tables at once, so that no tenant can fill
// the appliance's memory.
const (
	maxTables      = 50_000 // also the limit of policies
	maxExpression  = 10_000 // in characters, each
	maxExpressions = 16 << 20
)

var (
	// ErrNoTable means that there is no such table.
	ErrNoTable = errors.New("no such table")
	// ErrForeignTable means that the table is foreign: PostgreSQL has no row-level
	// security for those.
	ErrForeignTable = errors.New("foreign tables have no row-level security")
	// ErrTableBusy means that a session locked a table for longer than tableWait.
	ErrTableBusy = errors.New("the table is in use")
	// ErrManyTables means that there are more than maxTables tables or policies.
	ErrManyTables = fmt.Errorf("there are more than %d tables or policies", maxTables)
)

// tableWait is how long a statement waits for a session that locks a table.
// Reading policies waits, too: PostgreSQL opens the table to print an expression.
const tableWait = 2 * time.Second

// Tables lists every table in the tenant's schemas: plain, partitioned and
// foreign ones. It may return ErrTableBusy or ErrManyTables. conn is the
// superuser's, in the tenant's database; its lock_timeout stays set to tableWait.
func Tables(ctx context.Context, conn *pgx.Conn) ([]Table, error) {
	if err := boundWaits(ctx, conn); err != nil {
		return nil, err
	}
	tables, err := queryTables(ctx, conn, "", "")
	return tables, tableError(err)
}

func boundWaits(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", tableWait.Milliseconds())); err != nil {
		return fmt.Errorf("bound the wait for tables: %w", err)
	}
	return nil
}

// FindTable returns one table of Tables, or ErrNoTable.
func FindTable(ctx context.Context, conn *pgx.Conn, schema, name string) (Table, error) {
	tables, err := queryTables(ctx, conn, schema, name)
	if err != nil {
		return Table{}, err
	}
	if len(tables) != 1 {
		return Table{}, ErrNoTable
	}
	return tables[0], nil
}

// queryTables returns the named table, or all tables if name is empty.
func queryTables(ctx context.Context, conn *pgx.Conn, schema, name string) ([]Table, error) {
	rows, _ := conn.Query(ctx, `
		select c.oid, n.nspname, c.relname, pg_get_userbyid(c.relowner), c.relrowsecurity, c.relforcerowsecurity,
			c.reltuples::bigint, c.relkind = 'f'
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'p', 'f') and c.relpersistence <> 't'
			and n.nspname not like 'pg\_%' and n.nspname <> 'information_schema'
			and ($2 = '' or n.nspname = $1 and c.relname = $2)
		order by n.nspname, c.relname limit $3`, schema, name, maxTables+1)
	tables, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Table, error) {
		var t Table
		err := row.Scan(&t.oid, &t.Schema, &t.Name, &t.Owner, &t.RLSEnabled, &t.RLSForced, &t.EstimatedRows, &t.foreign)
		return t, err
	})
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	if len(tables) > maxTables {
		return nil, ErrManyTables
	}
	policies, err := queryPolicies(ctx, conn, tables)
	if err != nil {
		return nil, err
	}
	for i := range tables {
		tables[i].Policies = policies[tables[i].oid]
	}
	return tables, nil
}

func queryPolicies(ctx context.Context, conn *pgx.Conn, tables []Table) (map[uint32][]Policy, error) {
	oids := make([]uint32, len(tables))
	for i, t := range tables {
		oids[i] = t.oid
	}
	rows, _ := conn.Query(ctx, `
		select polrelid, polname,
			case polcmd when 'r' then 'SELECT' when 'a' then 'INSERT' when 'w' then 'UPDATE' when 'd' then 'DELETE' else 'ALL' end,
			polpermissive,
			case when polroles = '{0}' then array['public']
				else array(select rolname::text from pg_roles where oid = any (polroles) order by rolname) end,
			left(pg_get_expr(polqual, polrelid), $2), left(pg_get_expr(polwithcheck, polrelid), $2)
		from pg_policy where polrelid = any ($1) order by polname limit $3`, oids, maxExpression+1, maxTables+1)
	policies := map[uint32][]Policy{}
	var oid uint32
	var p Policy
	count, left := 0, maxExpressions
	_, err := pgx.ForEachRow(rows, []any{&oid, &p.Name, &p.Command, &p.Permissive, &p.Roles, &p.Using, &p.WithCheck}, func() error {
		if count++; count > maxTables {
			return ErrManyTables
		}
		cutExpression(p.Using, &left)
		cutExpression(p.WithCheck, &left)
		policies[oid] = append(policies[oid], p)
		p = Policy{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	return policies, nil
}

// cutExpression truncates an expression that is longer than maxExpression or, in
// bytes, than the others have left.
func cutExpression(expression *string, left *int) {
	if expression == nil {
		return
	}
	if utf8.RuneCountInString(*expression) > maxExpression { // by one character: the query reads one more
		_, last := utf8.DecodeLastRuneInString(*expression)
		*expression = (*expression)[:len(*expression)-last] + "…"
	}
	if len(*expression) > *left {
		*expression = "…"
	}
	*left -= len(*expression)
}

// SetRLS turns row-level security of a table on or off, and, if force is not nil,
// also for its owner. If it returns ErrNoTable, ErrForeignTable or ErrTableBusy,
// it has changed nothing. conn is the superuser's, in the tenant's database; its
// lock_timeout stays set to tableWait.
func SetRLS(ctx context.Context, conn *pgx.Conn, schema, name string, enabled bool, force *bool) (Table, error) {
	if err := boundWaits(ctx, conn); err != nil {
		return Table{}, err
	}
	table, err := FindTable(ctx, conn, schema, name)
	if err != nil {
		return table, tableError(err)
	}
	if table.foreign {
		return table, ErrForeignTable
	}
	statement := "ALTER TABLE " + pgx.Identifier{schema, name}.Sanitize() + rlsClause(enabled, force)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return table, tableError(fmt.Errorf("change row-level security: %w", err))
	}
	changed, err := FindTable(ctx, conn, schema, name)
	return changed, tableError(err)
}

func rlsClause(enabled bool, force *bool) string {
	clause := " DISABLE ROW LEVEL SECURITY"
	if enabled {
		clause = " ENABLE ROW LEVEL SECURITY"
	}
	switch {
	case force == nil:
		return clause
	case *force:
		return clause + ", FORCE ROW LEVEL SECURITY"
	default:
		return clause + ", NO FORCE ROW LEVEL SECURITY"
	}
}

// tableError maps the failures that a client can act on; the codes are from
// PostgreSQL's appendix A.
func tableError(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "55P03": // lock_not_available
			return ErrTableBusy
		case "42P01", "3F000": // undefined_table, invalid_schema_name: dropped meanwhile
			return ErrNoTable
		}
	}
	return err
}
