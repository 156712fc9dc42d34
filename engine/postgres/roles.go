package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"holdfast/engine/model"

	"github.com/jackc/pgx/v5"
)

// The names in a prepared data directory; Provision changes them.
const (
	preparedDatabase = "app"
	preparedOwner    = "app"
	preparedReadOnly = "app_readonly"
)

// readOnlyMark is the comment that identifies the read-only role whatever its
// name. Tenants cannot write comments on roles.
const readOnlyMark = "holdfast: read-only role"

// Tenant is the database of an instance and the roles that may log in to it.
type Tenant struct {
	Database         string
	Owner            string // owns the database; an ordinary role
	OwnerPassword    model.Secret
	ReadOnly         string // reads what the owner makes, writes nothing
	ReadOnlyPassword model.Secret
	// Replication may stream the database's changes; "" means that no role may.
	Replication         string
	ReplicationPassword model.Secret
	// OwnerVerifier is the verifier in pg_authid after the owner has changed the
	// password by SQL. If set, the role keeps it, and OwnerPassword is not used.
	OwnerVerifier model.Secret
	// Connections is how many sessions the owner may have at a time; the read-only
	// role may have a part of that. 0 means no limit.
	Connections int
	// Superuser makes the owner a superuser: the server is a sandbox of the user as
	// whom it runs.
	Superuser bool
	// Roles are those as which clients may log in besides the others.
	Roles []ClientRole
}

// SetPasswords gives the roles of the tenant new passwords. Open sessions stay
// open, except those that are changing a role: a client with the old password
// must not be able to delay its own end by a transaction. SetPasswords also
// resets what a role may change about itself, such as the setting that makes the
// read-only role's transactions read-only. conn is the superuser's, in the
// database postgres.
func SetPasswords(ctx context.Context, conn *pgx.Conn, t Tenant) error {
	statements, err := t.credentials()
	var replication []string
	if err == nil {
		replication, err = t.replicationRole()
	}
	if err == nil {
		err = runAlone(ctx, conn, slices.Concat(statements, replication, t.clientRoles()))
	}
	if err != nil {
		return fmt.Errorf("set passwords: %w", err)
	}
	return nil
}

// rollBackWhere rolls back the prepared transactions, p, that a condition selects.
func rollBackWhere(ctx context.Context, conn *pgx.Conn, condition string, arguments ...any) error {
	rows, _ := conn.Query(ctx, "select database, format('ROLLBACK PREPARED %L', gid) from pg_prepared_xacts p where "+condition, arguments...)
	type prepared struct{ Database, RollBack string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[prepared])
	if err != nil {
		return err
	}
	for _, p := range all {
		if err := inOtherDatabase(ctx, conn, p.Database, func(there *pgx.Conn) error {
			_, err := there.Exec(ctx, p.RollBack)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// inOtherDatabase runs act in another database of conn's server, as the same role. It opens a database that is closed.
func inOtherDatabase(ctx context.Context, conn *pgx.Conn, database string, act func(*pgx.Conn) error) error {
	config := conn.Config()
	config.Database = database
	there, err := pgx.ConnectConfig(ctx, config)
	if isClosed(err) { // by its owner
		if _, err := conn.Exec(ctx, openDatabases("datname = "+quoteLiteral(database), "ALLOW_CONNECTIONS true")); err != nil {
			return err
		}
		there, err = pgx.ConnectConfig(ctx, config)
	}
	if err != nil {
		return err
	}
	defer there.Close(context.WithoutCancel(ctx))
	return act(there)
}

// credentials returns the statements that set both roles' logins to t.
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
		"ALTER ROLE " + o + " " + t.ownerRights() + connectionLimit(t.Connections) + passwordClause(owner),
		"ALTER ROLE " + quoteName(t.ReadOnly) + " " + plainRole + connectionLimit(t.readerConnections()) + passwordClause(readOnly),
	}, readerSettings(t.Database, t.ReadOnly)...), nil
}

func (t Tenant) ownerRights() string {
	if t.Superuser {
		return "LOGIN SUPERUSER"
	}
	return plainRole
}

// ownerVerifier returns what pg_authid is to have for the owner's role.
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

// readerConnections leaves most of the server's connections to the owner.
func (t Tenant) readerConnections() int {
	if t.Connections == 0 {
		return 0
	}
	return max(1, t.Connections*2/5)
}

// readerTempShare is the divisor of temp_file_limit for sessions of roles that only
// read.
const readerTempShare = 16

// readerSettings returns statements that reset what a role that only reads has set
// for itself, and limit what its sessions use. The role can switch off the time
// limits, but not temp_file_limit, which only a superuser can change.
func readerSettings(database, role string) []string {
	r := quoteName(role)
	return []string{
		"ALTER ROLE " + r + " RESET ALL",
		"ALTER ROLE " + r + " IN DATABASE " + quoteName(database) + " RESET ALL",
		"ALTER ROLE " + r + " SET default_transaction_read_only = on",
		"ALTER ROLE " + r + " SET statement_timeout = '1h'",
		"ALTER ROLE " + r + " SET idle_in_transaction_session_timeout = '10min'",
		fmt.Sprintf(`DO $$ DECLARE kb bigint := (SELECT setting FROM pg_settings WHERE name = 'temp_file_limit'); BEGIN
			IF kb >= 0 THEN EXECUTE format('ALTER ROLE %%s SET temp_file_limit = %%L', %s, kb / %d || 'kB'); END IF; END $$`,
			quoteLiteral(r), readerTempShare),
	}
}

// plainRole are the attributes of both roles: they may only log in. closedRole are
// their attributes until there is a tenant: not even that.
const (
	plainRole  = "LOGIN " + noRights
	closedRole = "NOLOGIN " + noRights
	noRights   = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
)

// run runs the statements in one transaction and one round trip. Their texts
// contain verifiers: the superuser's sessions log no statements
// (sessionSettings), and run also switches off pg_stat_statements.
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

// quoteLiteral quotes an SQL string. standard_conforming_strings is on.
func quoteLiteral(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// quoteName quotes an SQL identifier.
func quoteName(name string) string { return pgx.Identifier{name}.Sanitize() }
