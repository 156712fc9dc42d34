package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// fillTemplate creates the database, the roles and their privileges in a fresh
// instance, with the prepared names, without passwords and the right to log in. It
// runs once for each template.
func fillTemplate(ctx context.Context, spec Spec) error {
	if err := inDatabase(ctx, spec, "postgres", func(conn *pgx.Conn) error {
		return all(ctx, conn, templateCluster())
	}); err != nil {
		return fmt.Errorf("make the tenant's roles: %w", err)
	}
	if err := inDatabase(ctx, spec, preparedDatabase, func(conn *pgx.Conn) error {
		return all(ctx, conn, append(createHeldSchema(extensionSchema), preparedTenant().databasePrivileges()...))
	}); err != nil {
		return fmt.Errorf("make the tenant's database: %w", err)
	}
	// The checkpoint of the shutdown is the first record of a WAL file then, which copies get as good as empty.
	if err := inDatabase(ctx, spec, "postgres", func(conn *pgx.Conn) error {
		return all(ctx, conn, []string{"SELECT pg_switch_wal()"})
	}); err != nil {
		return fmt.Errorf("begin a WAL file: %w", err)
	}
	return nil
}

// templateCluster returns the statements to run in the database postgres.
func templateCluster() []string {
	o, r, d := quoteName(preparedOwner), quoteName(preparedReadOnly), quoteName(preparedDatabase)
	statements := []string{
		"CREATE ROLE " + o + " " + closedRole,
		"CREATE ROLE " + r + " " + closedRole,
		"COMMENT ON ROLE " + r + " IS '" + readOnlyMark + "'",
		"ALTER ROLE " + r + " SET default_transaction_read_only = on",
		"CREATE DATABASE " + d + " OWNER " + o,
		`ALTER DATABASE ` + d + ` SET search_path = "$user", public, ` + extensionSchema,
		"REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC",
		// Only the appliance uses this view of statements. A tenant's database does not
		// get the extension: it is not trusted, and an owner could not restore
		// elsewhere a dump that names it.
		`DO $$ BEGIN
			IF current_setting('shared_preload_libraries') LIKE '%pg_stat_statements%' THEN
				CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public;
			END IF; END $$`,
	}
	return append(statements, preparedTenant().grants()...)
}

func preparedTenant() Tenant {
	return Tenant{Database: preparedDatabase, Owner: preparedOwner, ReadOnly: preparedReadOnly}
}

// ownersFunctions matches the functions of pg_catalog that change something, or
// block others, and need no privilege: large objects, WAL messages, advisory
// locks and transaction numbers. It does not match pg_advisory_unlock_all, which
// pools call when a session is returned to them.
const ownersFunctions = `^(lo_creat|lo_create|lo_from_bytea|lo_put|lowrite|lo_unlink|lo_truncate|lo_truncate64|` +
	`pg_logical_emit_message|pg_(try_)?advisory_(xact_)?lock(_shared)?|txid_current|pg_current_xact_id)$`

// databasePrivileges returns the statements, run in the tenant's database, that
// set the privileges of both roles there.
func (t Tenant) databasePrivileges() []string {
	return []string{t.functionPrivileges(), readerPrivileges, keptDefaults}
}

// functionPrivileges returns the statement that moves functions which write or
// lock without a privilege from PUBLIC to the owner and the group of roles that
// write, so that those that only read cannot call them. No one has the functions that read or write the server's
// files to begin with. The functions are looked up, because their arguments
// differ between major versions.
func (t Tenant) functionPrivileges() string {
	return `DO $$ DECLARE f regprocedure; BEGIN
		FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ '` + ownersFunctions + `'
		LOOP
			EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
			EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', f, ` + quoteLiteral(quoteName(t.Owner)) + `);
			IF EXISTS (SELECT FROM pg_roles WHERE rolname = '` + writeGroup + `') THEN
				EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO ` + writeGroup + `', f);
			END IF;
		END LOOP;
		FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
			AND proname IN ('lo_import', 'lo_export')
		LOOP
			EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
		END LOOP;
		` + concealPrivileges + ` END $$`
}

// concealPrivileges are the statements, in PL/pgSQL, that make the privileges on PostgreSQL's own functions in a database the
// initial ones. pg_dump writes those that differ: only a superuser could restore them, and pg_upgrade could not where
// another version has other arguments.
const concealPrivileges = `SET LOCAL allow_system_table_mods = on;
		DELETE FROM pg_init_privs i USING pg_proc p
			WHERE i.classoid = 'pg_proc'::regclass AND i.objoid = p.oid AND p.pronamespace = 'pg_catalog'::regnamespace
			AND p.proacl IS DISTINCT FROM i.initprivs;
		INSERT INTO pg_init_privs (objoid, classoid, objsubid, privtype, initprivs)
			SELECT p.oid, 'pg_proc'::regclass, 0, 'i', p.proacl FROM pg_proc p
			WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proacl IS NOT NULL AND NOT EXISTS (
				SELECT FROM pg_init_privs i WHERE i.classoid = 'pg_proc'::regclass AND i.objoid = p.oid AND i.objsubid = 0);`

// isPrepared reports whether the tenant's database, which conn need not be in,
// has the privileges of [Tenant.databasePrivileges]. The cluster records the
// owner's grants in every database. A database made by an older version lacks
// some, and its read-only role is a member of pg_read_all_data. isPrepared
// ignores what the owner has revoked since.
func (t Tenant) isPrepared(ctx context.Context, conn *pgx.Conn) (prepared bool, err error) {
	err = conn.QueryRow(ctx, `select not exists (
		select from pg_proc where pronamespace = 'pg_catalog'::regnamespace and proname ~ $3 and oid not in (
			select d.objid from pg_shdepend d where d.dbid = (select oid from pg_database where datname = $1)
			and d.classid = 'pg_proc'::regclass and d.refclassid = 'pg_authid'::regclass
			and d.refobjid = (select oid from pg_roles where rolname = $2) and d.deptype = 'a'))
		and not exists (select from pg_auth_members where roleid = 'pg_read_all_data'::regrole
			and member = (select oid from pg_roles where rolname = $4))`,
		t.Database, t.Owner, ownersFunctions, t.ReadOnly).Scan(&prepared)
	if err != nil {
		return false, fmt.Errorf("look at the database's privileges: %w", err)
	}
	return prepared, nil
}

// prepareDatabase gives the tenant's database the privileges it lacks.
func (t Tenant) prepareDatabase(ctx context.Context, conn *pgx.Conn) error {
	if prepared, err := t.isPrepared(ctx, conn); err != nil || prepared {
		return err
	}
	err := inOtherDatabase(ctx, conn, t.Database, func(there *pgx.Conn) error { return run(ctx, there, t.databasePrivileges()) })
	if err != nil {
		return fmt.Errorf("set the database's privileges: %w", err)
	}
	return nil
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
