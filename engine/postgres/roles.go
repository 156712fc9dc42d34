package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"holdfast/engine/model"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The names in a prepared data directory; Provision changes them.
const (
	preparedDatabase = "app"
	preparedOwner    = "app"
	preparedReadOnly = "app_readonly"
)

// readOnlyMark is the comment by which the read-only role is known whatever
// it is called. Comments on roles are not for tenants to write.
const readOnlyMark = "holdfast: read-only role"

// Tenant is the database of an instance and who may log in to it.
type Tenant struct {
	Database         string
	Owner            string // owns the database; never more than an ordinary role
	OwnerPassword    model.Secret
	ReadOnly         string // reads what the owner makes, writes nothing
	ReadOnlyPassword model.Secret
	// OwnerVerifier is the verifier in pg_authid after the owner has changed the
	// password by SQL. When set, the role keeps it, and OwnerPassword is not used.
	OwnerVerifier model.Secret
	// Connections is how many sessions the owner may have at a time; the
	// read-only role may have a part of that. 0 means no limit.
	Connections int
}

// SetPasswords gives both roles of the tenant new passwords; sessions that
// are open stay open, except those that are changing a role: a client with
// the old password must not be able to delay its end by a transaction. It also takes back
// what a role may change about itself, for the read-only role the setting that
// makes its transactions read-only. conn is the superuser's, in the database
// postgres.
func SetPasswords(ctx context.Context, conn *pgx.Conn, t Tenant) error {
	statements, err := t.credentials()
	if err == nil {
		err = runAlone(ctx, conn, statements)
	}
	if err != nil {
		return fmt.Errorf("set passwords: %w", err)
	}
	return nil
}

// roleCatalogs are where what tenants may change about their roles and database
// is written.
const roleCatalogs = "pg_authid, pg_db_role_setting, pg_database, pg_auth_members"

// runAlone is run under a lock on roles and databases: two concurrent changes of one
// fail, and a tenant's open transaction would block this one.
func runAlone(ctx context.Context, conn *pgx.Conn, statements []string) error {
	statements = append([]string{
		"SET LOCAL lock_timeout = '100ms'",
		"LOCK TABLE " + roleCatalogs + " IN SHARE ROW EXCLUSIVE MODE",
	}, statements...)
	for tries := 1; ; tries++ {
		err := run(ctx, conn, statements)
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "55P03" { // lock_not_available
			return err
		}
		if err := endRoleChanges(ctx, conn, tries >= patience); err != nil {
			return err
		}
	}
}

// patience is how many attempts, of 100 ms each, are made before sessions end
// that only may be what is in the way.
const patience = 20

// endRoleChanges ends the tenants' sessions whose transactions have changed a
// role or the database. Not every change leaves a lock to know it by (GRANT does
// not): anyOne ends those that have written anything.
func endRoleChanges(ctx context.Context, conn *pgx.Conn, anyOne bool) error {
	_, err := conn.Exec(ctx, `select pg_terminate_backend(a.pid) from pg_stat_activity a where a.usename <> $1 and (exists (
		select from pg_locks l where l.pid = a.pid and l.granted and l.mode = 'RowExclusiveLock'
		and l.relation = any (string_to_array($2, ', ')::regclass[])) or $3 and a.backend_xid is not null)`, Superuser, roleCatalogs, anyOne)
	if err != nil {
		return fmt.Errorf("end sessions that change roles: %w", err)
	}
	if err := rollBackPrepared(ctx, conn, anyOne); err != nil {
		return fmt.Errorf("roll back prepared transactions that change roles: %w", err)
	}
	return nil
}

// rollBackPrepared does with prepared transactions, which belong to no session and
// outlive the server, what endRoleChanges does with sessions.
func rollBackPrepared(ctx context.Context, conn *pgx.Conn, anyOne bool) error {
	rows, _ := conn.Query(ctx, `select database, format('ROLLBACK PREPARED %L', gid) from pg_prepared_xacts p where $2 or exists (
		select from pg_locks l join pg_locks own using (virtualtransaction)
		where own.transactionid = p.transaction and own.mode = 'ExclusiveLock' and l.mode = 'RowExclusiveLock' and l.relation = any (string_to_array($1, ', ')::regclass[]))`, roleCatalogs, anyOne)
	type prepared struct{ Database, RollBack string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[prepared])
	if err != nil {
		return err
	}
	for _, p := range all {
		if err := elsewhere(ctx, conn, p.Database, func(there *pgx.Conn) error {
			_, err := there.Exec(ctx, p.RollBack)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere acts in another database of the server of conn, as the same role.
func elsewhere(ctx context.Context, conn *pgx.Conn, database string, act func(*pgx.Conn) error) error {
	config := conn.Config()
	config.Database = database
	there, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer there.Close(context.WithoutCancel(ctx))
	return act(there)
}

// credentials are the statements that make both roles log in as t says.
func (t Tenant) credentials() ([]string, error) {
	owner, err := t.ownerVerifier()
	if err != nil {
		return nil, err
	}
	readOnly, err := scramVerifier(t.ReadOnlyPassword)
	if err != nil {
		return nil, err
	}
	o := quoteName(t.Owner)
	return append([]string{
		"ALTER ROLE " + o + " " + plainRole + connectionLimit(t.Connections) + passwordClause(owner),
		"ALTER ROLE " + quoteName(t.ReadOnly) + " " + plainRole + connectionLimit(t.readerConnections()) + passwordClause(readOnly),
	}, t.readerSettings()...), nil
}

// ownerVerifier is what the owner's role is to have in pg_authid.
func (t Tenant) ownerVerifier() (string, error) {
	if verifier := t.OwnerVerifier.Reveal(); verifier != "" {
		return verifier, nil
	}
	return scramVerifier(t.OwnerPassword)
}

func passwordClause(verifier string) string {
	if verifier == NoPassword {
		return " PASSWORD NULL"
	}
	return " PASSWORD " + quoteLiteral(verifier)
}

func connectionLimit(n int) string {
	if n == 0 {
		n = -1
	}
	return fmt.Sprintf(" CONNECTION LIMIT %d", n)
}

// readerConnections leaves most of the server's places to the owner.
func (t Tenant) readerConnections() int {
	if t.Connections == 0 {
		return 0
	}
	return max(1, t.Connections*2/5)
}

// readerTempShare is the part of temp_file_limit that a session of the
// read-only role may use.
const readerTempShare = 16

// readerSettings reset what the read-only role has set for itself, and bound
// what its sessions take. It can switch off the time limits, but not
// temp_file_limit, which only a superuser can change.
func (t Tenant) readerSettings() []string {
	r := quoteName(t.ReadOnly)
	return []string{
		"ALTER ROLE " + r + " RESET ALL",
		"ALTER ROLE " + r + " IN DATABASE " + quoteName(t.Database) + " RESET ALL",
		"ALTER ROLE " + r + " SET default_transaction_read_only = on",
		"ALTER ROLE " + r + " SET statement_timeout = '1h'",
		"ALTER ROLE " + r + " SET idle_in_transaction_session_timeout = '10min'",
		fmt.Sprintf(`DO $$ DECLARE kb bigint := (SELECT setting FROM pg_settings WHERE name = 'temp_file_limit'); BEGIN
			IF kb >= 0 THEN EXECUTE format('ALTER ROLE %%s SET temp_file_limit = %%L', %s, kb / %d || 'kB'); END IF; END $$`,
			quoteLiteral(r), readerTempShare),
	}
}

// plainRole are the attributes of both roles: they log in, and that is all.
const plainRole = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"

// run runs the statements in one transaction and one round trip. Their texts
// hold verifiers: sessions of the superuser log no statements
// (sessionSettings), and here the statistics of statements are off, too.
func run(ctx context.Context, conn *pgx.Conn, statements []string) error {
	text := "BEGIN; SET LOCAL search_path = pg_catalog; SET LOCAL pg_stat_statements.track = none; " +
		strings.Join(statements, "; ") + "; COMMIT"
	if _, err := conn.PgConn().Exec(ctx, text).ReadAll(); err != nil {
		// The session may be left in the failed transaction.
		_, _ = conn.PgConn().Exec(context.WithoutCancel(ctx), "ROLLBACK").ReadAll()
		return err
	}
	return nil
}

// quoteLiteral writes an SQL string. Sessions have standard_conforming_strings on.
func quoteLiteral(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// quoteName writes an SQL identifier.
func quoteName(name string) string { return pgx.Identifier{name}.Sanitize() }
