package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// keepsStatistics is the first major version whose pg_upgrade brings the planner's
// statistics over.
const keepsStatistics = 18

// analyzeLimit bounds how long clients wait for statistics: an expression of an index
// is the tenant's code.
const analyzeLimit = time.Minute

// takeStatistics takes the planner's statistics after an upgrade, unless pg_upgrade has
// brought them over. A note says that they are not complete.
func takeStatistics(ctx context.Context, spec Spec, tenant names, done *Upgraded) error {
	if spec.Bin.Major >= keepsStatistics {
		return nil
	}
	if err := eachTenants(ctx, spec, func(ctx context.Context, conn *pgx.Conn) error { return analyzeTables(ctx, conn, "relowner = 10") }); err != nil {
		return err
	}
	conn, err := connectAs(ctx, spec, nil, tenant.database, tenant.owner)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := all(ctx, conn, []string{fmt.Sprintf("SET statement_timeout = %d", analyzeLimit.Milliseconds())}); err != nil {
		return err
	}
	err = Analyze(ctx, conn)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		done.Notes = append(done.Notes, fmt.Sprintf("the planner's statistics are not complete (%s): run ANALYZE", pg.Message))
		return nil
	}
	done.Analyzed = err == nil
	return err
}

// Analyze takes the planner's statistics of a tenant's tables. conn is the owner's, in its
// database, because that runs the tenant's code. ANALYZE without a list would warn of
// each of the tables that only a superuser may analyze.
func Analyze(ctx context.Context, conn *pgx.Conn) error {
	if err := all(ctx, conn, []string{`SET search_path = "$user", public, ` + extensionSchema}); err != nil {
		return err
	}
	return analyzeTables(ctx, conn, "relowner <> 10")
}

// analyzeTables takes the statistics of the tables and materialized views that a condition
// selects. Those of a partitioned table include its partitions'.
func analyzeTables(ctx context.Context, conn *pgx.Conn, condition string) error {
	tables, err := collect(ctx, conn, `select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where relkind in ('r', 'm', 'p') and not relispartition and relpersistence <> 't' and `+condition)
	if err != nil || len(tables) == 0 {
		return err
	}
	_, err = conn.Exec(ctx, "ANALYZE "+strings.Join(tables, ", "))
	return err
}
