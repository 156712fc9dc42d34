package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// The bounds of [Explain].
const (
	explainTimeout = 5 * time.Second // of the server
	maxPlan        = 256 << 10       // bytes
	maxFault       = 4 << 10         // bytes of the text of [StatementFault]
	// maxMessage limits one message of the server: a short statement can make the planner compute a constant of a gigabyte,
	// which is one line of the plan or part of an error.
	maxMessage = maxPlan + 1<<10
)

// ErrPlanTooLong means that a plan, or the server's error about the statement, is longer than [Explain] reads.
var ErrPlanTooLong = errors.New("the plan is too long to show")

// Explain returns the plan of a statement, as text. Nothing is executed but what the planner evaluates. conn is a
// session of the owner's role ([Supervisor.ConnectLocal]), for one plan: it is closed if that is too long. A statement may have
// parameters ($1): the plan is then the generic one. The transaction is read-only and rolled back.
func Explain(ctx context.Context, conn *pgx.Conn, statement string) (plan string, err error) {
	conn.PgConn().Frontend().SetMaxBodyLen(maxMessage)
	plan, err = explainReadOnly(ctx, conn, statement)
	if _, long := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); long {
		err = ErrPlanTooLong
	}
	return plan, err
}

func explainReadOnly(ctx context.Context, conn *pgx.Conn, statement string) (string, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return "", fmt.Errorf("explain: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	for _, prepare := range []string{
		fmt.Sprintf("SET LOCAL statement_timeout = %d", explainTimeout.Milliseconds()), "SET LOCAL lock_timeout = 1000",
		ownSearchPath,
	} {
		if _, err := tx.Exec(ctx, prepare); err != nil {
			return "", fmt.Errorf("explain: %w", err)
		}
	}
	return explainPrepared(ctx, conn, statement)
}

// ownSearchPath gives the session the search path that its role has in its database: the appliance's sessions have
// another one.
const ownSearchPath = `SELECT pg_catalog.set_config('search_path', coalesce((
	SELECT substr(c, length('search_path=') + 1) FROM pg_catalog.pg_db_role_setting s, unnest(setconfig) c
	WHERE c LIKE 'search_path=%' AND setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
		AND setrole IN (0, (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user))
	ORDER BY setrole <> 0 DESC, setdatabase <> 0 DESC LIMIT 1), '"$user", public'), true)`

// explainPrepared returns the generic plan of a prepared statement. EXPLAIN (GENERIC_PLAN) accepts parameters in the simple
// protocol only, where the text could be several statements.
func explainPrepared(ctx context.Context, conn *pgx.Conn, statement string) (string, error) {
	for _, prepare := range []string{"SET LOCAL plan_cache_mode = force_generic_plan", "PREPARE explained AS " + statement} {
		if _, err := planOf(ctx, conn, prepare); err != nil {
			return "", err
		}
	}
	var parameters int
	if err := conn.QueryRow(ctx, "SELECT coalesce(cardinality(parameter_types), 0) FROM pg_catalog.pg_prepared_statements WHERE name = 'explained'").Scan(&parameters); err != nil {
		return "", fmt.Errorf("explain: %w", err)
	}
	arguments := ""
	if parameters > 0 {
		arguments = "(" + strings.Repeat("NULL, ", parameters-1) + "NULL)"
	}
	return planOf(ctx, conn, "EXPLAIN EXECUTE explained"+arguments)
}

// planOf sends one statement by the extended protocol, which refuses a text of several, and returns its result's lines.
// (pgx uses the simple protocol for Exec without arguments.) It closes the session instead of reading more than maxPlan.
func planOf(ctx context.Context, conn *pgx.Conn, statement string) (string, error) {
	var plan strings.Builder
	result := conn.PgConn().ExecParams(ctx, statement, nil, nil, nil, nil)
	for result.NextRow() {
		line := result.Values()[0]
		if plan.Len()+len(line) > maxPlan {
			_ = conn.Close(context.WithoutCancel(ctx)) // else closing the result would read the rest
			return "", ErrPlanTooLong
		}
		plan.Write(line)
		plan.WriteByte('\n')
	}
	if _, err := result.Close(); err != nil {
		return "", err
	}
	return plan.String(), nil
}

// StatementFault returns what PostgreSQL finds wrong with a client's statement, or the beginning of a long text, "" if err is
// something else, and whether it took too long or waited for a lock.
func StatementFault(err error) (fault string, busy bool) {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return "", false
	}
	fault = pg.Message
	if len(fault) > maxFault {
		fault = strings.ToValidUTF8(fault[:maxFault], "") + "…"
	}
	switch pg.Code {
	case "57014", "55P03": // query_canceled, lock_not_available
		return fault, true
	}
	if pg.Code[:2] == "57" || pg.Code[:2] == "53" || pg.Code[:2] == "XX" { // the server's state
		return "", false
	}
	return fault, false
}
