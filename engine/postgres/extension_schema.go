package postgres

import (
	"context"
	"fmt"

	"holdfast/engine/model"
	"holdfast/engine/postgres/extensions"

	"github.com/jackc/pgx/v5"
)

// extensionSchema is the schema of the tenant's database for extensions that the
// appliance creates. It belongs to [Superuser], and tenants may only use it: the
// scripts of an extension run as the superuser with that schema first on their
// search path, so it must contain nothing of a tenant's.
const extensionSchema = extensions.Schema

// createHeldSchema returns the statements that create a schema which belongs to
// the superuser and which everyone may use; they fail if it exists. The schema is
// made a member of plpgsql, which every database has and no tenant can change:
// pg_dump leaves out the members of extensions, and only a superuser could
// restore this one.
func createHeldSchema(name string) []string {
	n := quoteName(name)
	return []string{
		"CREATE SCHEMA " + n,
		"GRANT USAGE ON SCHEMA " + n + " TO PUBLIC",
		"ALTER EXTENSION plpgsql ADD SCHEMA " + n,
	}
}

// makeHeldSchema creates the schema unless it exists. If a tenant creates it at the
// same time, one of the two fails.
func makeHeldSchema(ctx context.Context, conn *pgx.Conn, name string) error {
	var exists bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_namespace where nspname = $1)", name).Scan(&exists); err != nil || exists {
		return err
	}
	return all(ctx, conn, createHeldSchema(name))
}

// refuseSchema refuses an extension whose script makes a schema that exists.
func refuseSchema(ctx context.Context, conn *pgx.Conn, extension, name string) error {
	var exists bool
	err := conn.QueryRow(ctx, "select exists (select from pg_namespace where nspname = $1)", name).Scan(&exists)
	if err == nil && exists {
		return model.Errorf(model.CodeConflict, "the extension %s makes the schema %q, and the database has one of that name: rename or drop yours", extension, name)
	}
	return err
}

// schemaObjects lists the objects of the schema $1 that belong to another role than
// the superuser.
const schemaObjects = `select format('%s %I of %s', what, name, pg_get_userbyid(owner)) from (
	select 'relation', relname, relowner, relnamespace from pg_class where relkind <> 'i'
	union all select 'function', proname, proowner, pronamespace from pg_proc
	union all select 'type', typname, typowner, typnamespace from pg_type
	union all select 'operator', oprname, oprowner, oprnamespace from pg_operator
	union all select 'operator class', opcname, opcowner, opcnamespace from pg_opclass
	union all select 'operator family', opfname, opfowner, opfnamespace from pg_opfamily
	union all select 'collation', collname, collowner, collnamespace from pg_collation
	union all select 'conversion', conname, conowner, connamespace from pg_conversion
	union all select 'text search configuration', cfgname, cfgowner, cfgnamespace from pg_ts_config
	union all select 'text search dictionary', dictname, dictowner, dictnamespace from pg_ts_dict
	) o (what, name, owner, schema) where schema = $1::oid and owner <> $2::oid limit 1`

// verifySchema refuses an extension whose script would run in a schema that is not
// the superuser's alone: it must own the schema and everything in it, and nobody
// else may create anything there.
func verifySchema(ctx context.Context, conn *pgx.Conn, extension, name string) error {
	refuse := func(why string) error {
		return model.Errorf(model.CodeConflict, "the script of the extension %s would run as the superuser in the schema %q, which is not the appliance's alone (%s): "+
			"drop the extensions that you have there and let the appliance create them, or rename the schema", extension, name, why)
	}
	var schema, superuser uint32
	var owner, creators string
	if err := conn.QueryRow(ctx, `select n.oid, r.oid, pg_get_userbyid(n.nspowner)::text, coalesce((select string_agg(coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC'), ', ')
		from aclexplode(n.nspacl) a where a.privilege_type = 'CREATE' and a.grantee <> r.oid), '')
		from pg_namespace n, pg_roles r where n.nspname = $1 and r.rolname = $2`, name, Superuser).Scan(&schema, &superuser, &owner, &creators); err != nil {
		return err
	}
	if owner != Superuser {
		return refuse("it belongs to " + owner)
	}
	if creators != "" {
		return refuse("objects may be made in it by " + creators)
	}
	rows, _ := conn.Query(ctx, schemaObjects, schema, superuser)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(found) > 0 {
		err = refuse("it has the " + found[0])
	}
	return err
}

// refuseEventTriggers refuses every change if the database has an event trigger. No
// tenant can create one.
func refuseEventTriggers(ctx context.Context, conn *pgx.Conn) error {
	var found bool
	err := conn.QueryRow(ctx, "select exists (select from pg_event_trigger)").Scan(&found)
	if err == nil && found {
		err = model.Errorf(model.CodeConflict, "the database has event triggers, which would run as the superuser: the operator must drop them")
	}
	return err
}

// resetTenantsSettings replaces, for the session, every setting that the tenant has
// given to the database by the server's own value. [sessionSettings] has those that
// decide where names lead; others decide how a script is read.
func resetTenantsSettings(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "LOAD 'plpgsql'"); err != nil {
		return fmt.Errorf("reset the database's settings: %w", err)
	}
	rows, _ := conn.Query(ctx, "select name from pg_settings where source in ('database', 'database user')")
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) == 0 {
		return err
	}
	type setting struct{ Name, Value string }
	var server []setting
	err = inOtherDatabase(ctx, conn, "postgres", func(there *pgx.Conn) error {
		if _, err := there.Exec(ctx, "LOAD 'plpgsql'"); err != nil {
			return err
		}
		rows, _ := there.Query(ctx, "select name, current_setting(name) from pg_settings where name = any ($1)", names)
		server, err = pgx.CollectRows(rows, pgx.RowToStructByPos[setting])
		return err
	})
	for _, s := range server {
		if err == nil {
			_, err = conn.Exec(ctx, "select set_config($1, $2, false)", s.Name, s.Value)
		}
	}
	if err != nil {
		return fmt.Errorf("reset the database's settings: %w", err)
	}
	return nil
}
