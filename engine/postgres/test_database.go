package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrDatabaseExists means that a database of that name exists.
var ErrDatabaseExists = errors.New("a database of this name exists")

// CreateBeside creates a database beside the tenant's, as empty as that was when it
// was made, with the same owner. conn is the superuser's, in the database postgres.
func (t Tenant) CreateBeside(ctx context.Context, conn *pgx.Conn, name string) error {
	err := createDatabase(ctx, conn, "CREATE DATABASE "+quoteName(name)+" OWNER "+quoteName(t.Owner))
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+quoteName(name)+` SET search_path = "$user", public, `+extensionSchema); err != nil {
		return fmt.Errorf("set the search path: %w", err)
	}
	err = inOtherDatabase(ctx, conn, name, func(there *pgx.Conn) error {
		return run(ctx, there, append(createHeldSchema(extensionSchema), t.databasePrivileges()...))
	})
	if err != nil {
		return fmt.Errorf("prepare the database: %w", err)
	}
	return nil
}

// CloseDatabase lets nobody connect to a database any more and ends its sessions, so
// that it can be copied.
func CloseDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+quoteName(name)+" ALLOW_CONNECTIONS false"); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	_, err := terminateWhere(ctx, conn, "datname = $2", name)
	return err
}

// CopyDatabase copies a closed database, with the settings that ALTER DATABASE has
// given to it, which CREATE DATABASE leaves out. The files are copied: a WAL record
// for each block takes twice the time.
func CopyDatabase(ctx context.Context, conn *pgx.Conn, name, template, owner string) error {
	err := createDatabase(ctx, conn, fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE %s STRATEGY file_copy",
		quoteName(name), quoteName(owner), quoteName(template)))
	if err != nil {
		return err
	}
	if err := run(ctx, conn, []string{
		"SET LOCAL allow_system_table_mods = on",
		fmt.Sprintf(`INSERT INTO pg_db_role_setting SELECT made.oid, setrole, setconfig
			FROM pg_db_role_setting, pg_database made, pg_database template
			WHERE setdatabase = template.oid AND template.datname = %s AND made.datname = %s`, quoteLiteral(template), quoteLiteral(name)),
	}); err != nil {
		return fmt.Errorf("copy the settings of database: %w", err)
	}
	return nil
}

func createDatabase(ctx context.Context, conn *pgx.Conn, statement string) error {
	_, err := conn.Exec(ctx, statement)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42P04" { // duplicate_database
		return ErrDatabaseExists
	}
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

// DropDatabase ends the sessions of a database and removes it. It succeeds if there
// is none of that name.
func DropDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+quoteName(name)+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database: %w", err)
	}
	return nil
}
