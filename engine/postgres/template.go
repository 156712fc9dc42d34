package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// fillTemplate makes a fresh instance a spare: database, roles, and who may
// do what, with the spare's names and no passwords. It is done once for each,
// before it can have a tenant.
func fillTemplate(ctx context.Context, spec Spec) error {
	if err := inDatabase(ctx, spec, "postgres", func(conn *pgx.Conn) error {
		return all(ctx, conn, templateCluster())
	}); err != nil {
		return fmt.Errorf("make the tenant's roles: %w", err)
	}
	if err := inDatabase(ctx, spec, spareDatabase, func(conn *pgx.Conn) error {
		return all(ctx, conn, templateDatabase())
	}); err != nil {
		return fmt.Errorf("make the tenant's database: %w", err)
	}
	return nil
}

// templateCluster are the statements run in the database postgres.
func templateCluster() []string {
	o, r, d := quoteName(spareOwner), quoteName(spareReadOnly), quoteName(spareDatabase)
	statements := []string{
		"CREATE ROLE " + o + " " + plainRole,
		"CREATE ROLE " + r + " " + plainRole,
		"COMMENT ON ROLE " + r + " IS '" + readOnlyMark + "'",
		"ALTER ROLE " + r + " SET default_transaction_read_only = on",
		"CREATE DATABASE " + d + " OWNER " + o,
		"REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC",
		// The appliance's own view of statements. A tenant's database does not
		// get it: it is no trusted extension, and a dump that
		// names it could not be restored elsewhere by its owner.
		`DO $$ BEGIN
			IF current_setting('shared_preload_libraries') LIKE '%pg_stat_statements%' THEN
				CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public;
			END IF; END $$`,
	}
	return append(statements, Tenant{Database: spareDatabase, Owner: spareOwner, ReadOnly: spareReadOnly}.grants()...)
}

// templateDatabase are the statements run in the tenant's database. What
// writes without needing a privilege on anything is taken from PUBLIC, so that
// the read-only role cannot, and given to the owner; what reads or writes the
// server's files is nobody's from the start. The functions are looked up,
// because their arguments differ from one major to the next.
func templateDatabase() []string {
	return []string{`DO $$ DECLARE f regprocedure; BEGIN
		FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname IN (
			'lo_create', 'lo_creat', 'lo_from_bytea', 'lo_put', 'lowrite', 'lo_unlink',
			'lo_truncate', 'lo_truncate64', 'pg_logical_emit_message')
		LOOP
			EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
			EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO ` + spareOwner + `', f);
		END LOOP;
		FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
			AND proname IN ('lo_import', 'lo_export')
		LOOP
			EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
		END LOOP;
		-- pg_dump writes down the privileges on PostgreSQL's own functions that
		-- are not as they were at first; nobody else could restore these.
		SET LOCAL allow_system_table_mods = on;
		DELETE FROM pg_init_privs i USING pg_proc p
			WHERE i.classoid = 'pg_proc'::regclass AND i.objoid = p.oid AND p.pronamespace = 'pg_catalog'::regnamespace
			AND p.proacl IS DISTINCT FROM i.initprivs;
		INSERT INTO pg_init_privs (objoid, classoid, objsubid, privtype, initprivs)
			SELECT p.oid, 'pg_proc'::regclass, 0, 'i', p.proacl FROM pg_proc p
			WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proacl IS NOT NULL AND NOT EXISTS (
				SELECT FROM pg_init_privs i WHERE i.classoid = 'pg_proc'::regclass AND i.objoid = p.oid AND i.objsubid = 0);
		END $$`}
}

// inDatabase runs do with a session as [Superuser] in the database.
func inDatabase(ctx context.Context, spec Spec, database string, do func(*pgx.Conn) error) error {
	conn, err := connect(ctx, spec, nil, database)
	if err != nil {
		return err
	}
	err = do(conn)
	if cerr := conn.Close(ctx); err == nil {
		err = cerr
	}
	return err
}

// all runs the statements one by one.
func all(ctx context.Context, conn *pgx.Conn, statements []string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
