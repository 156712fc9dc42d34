package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/engine/model"

	"github.com/jackc/pgx/v5"
)

// roleSetting is a row of pg_db_role_setting: what ALTER DATABASE and ALTER ROLE set.
// pg_upgrade keeps the oids of databases and roles.
type roleSetting struct {
	Database, Role uint32
	Config         []string
}

// oldCluster is what prepareCopy has found in the copy.
type oldCluster struct {
	tenant    names
	databases map[string]string // names by oid, of the tenant's
	settings  []roleSetting
}

// prepareCopy makes the copy fit for pg_upgrade, and returns the settings of its
// databases and roles, which it removes: a tenant's can change who pg_upgrade is,
// end its sessions, or prevent them, and pg_dumpall writes an empty list so that it
// cannot be read again.
func (u Upgrade) prepareCopy(ctx context.Context) (old oldCluster, err error) {
	// The settings of a superuser who used ALTER SYSTEM are not the record's.
	if err := os.Remove(filepath.Join(u.From.Dir, "postgresql.auto.conf")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return old, err
	}
	err = u.within(ctx, u.From, func() error {
		if err := inDatabase(ctx, u.From, "postgres", func(conn *pgx.Conn) (err error) {
			if old.tenant, err = present(ctx, conn, u.Database); err != nil {
				return err
			}
			if old.databases, err = databaseNames(ctx, conn); err != nil {
				return err
			}
			old.settings, err = prepareCluster(ctx, conn)
			return err
		}); err != nil {
			return err
		}
		return eachTenants(ctx, u.From, releaseSchemas)
	})
	return old, err
}

func prepareCluster(ctx context.Context, conn *pgx.Conn) ([]roleSetting, error) {
	if err := RefusePrepared(ctx, conn); err != nil {
		return nil, err
	}
	rows, _ := conn.Query(ctx, "select setdatabase, setrole, setconfig from pg_db_role_setting order by 1, 2")
	settings, err := pgx.CollectRows(rows, pgx.RowToStructByPos[roleSetting])
	if err != nil {
		return nil, err
	}
	if err := dropInvalidated(ctx, conn); err != nil {
		return nil, err
	}
	return settings, all(ctx, conn, []string{
		"SET allow_system_table_mods = on",
		"DELETE FROM pg_db_role_setting",
		"RESET allow_system_table_mods",
		"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots",
		"DROP EXTENSION IF EXISTS pg_stat_statements",                                             // the new version gets its own
		openDatabases(tenantMade, "IS_TEMPLATE false ALLOW_CONNECTIONS true CONNECTION LIMIT -1"), // their owners may have closed them
	})
}

// RefusePrepared refuses the upgrade of a server that has prepared transactions, which
// pg_upgrade does not bring over. conn is the superuser's.
func RefusePrepared(ctx context.Context, conn *pgx.Conn) error {
	prepared, err := collect(ctx, conn, "select format('%L in the database %I', gid, database) from pg_prepared_xacts order by prepared")
	if err == nil && len(prepared) > 0 {
		err = model.Errorf(model.CodeConflict, "the database has prepared transactions, which no upgrade keeps: commit or roll back %s", firstOf(prepared))
	}
	return err
}

func tenantDatabases(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	return collect(ctx, conn, "select datname::text from pg_database where "+tenantMade+" order by 1")
}

// databaseNames returns the names of the tenant's databases by their oids.
func databaseNames(ctx context.Context, conn *pgx.Conn) (map[string]string, error) {
	names := map[string]string{}
	var oid, name string
	rows, _ := conn.Query(ctx, "select oid::text, datname::text from pg_database where "+tenantMade)
	_, err := pgx.ForEachRow(rows, []any{&oid, &name}, func() error {
		names[oid] = name
		return nil
	})
	return names, err
}

// eachTenants runs act in the tenant's database and in those beside it.
func eachTenants(ctx context.Context, spec Spec, act func(context.Context, *pgx.Conn) error) error {
	var names []string
	err := inDatabase(ctx, spec, "postgres", func(conn *pgx.Conn) (err error) {
		names, err = tenantDatabases(ctx, conn)
		return err
	})
	for _, name := range names {
		if err == nil {
			err = inDatabase(ctx, spec, name, func(conn *pgx.Conn) error { return act(ctx, conn) })
		}
	}
	return err
}

// pg_dump leaves out the members of extensions, and pg_upgrade those of plpgsql.
const (
	heldSchemas = `select n.nspname::text from pg_depend d join pg_namespace n on n.oid = d.objid and d.classid = 'pg_namespace'::regclass
		join pg_extension e on e.oid = d.refobjid and d.refclassid = 'pg_extension'::regclass
		where e.extname = 'plpgsql' and d.deptype = 'e' order by 1`
	// superuserSchemas are those that were held, and are no longer.
	superuserSchemas = `select n.nspname::text from pg_namespace n where n.nspowner = 10 and n.oid >= 16384 and n.nspname !~ '^pg_'
		and not exists (select from pg_depend d where d.classid = 'pg_namespace'::regclass and d.objid = n.oid and d.deptype = 'e') order by 1`
)

// releaseSchemas takes the appliance's schemas out of plpgsql, so that pg_upgrade
// brings them over.
func releaseSchemas(ctx context.Context, conn *pgx.Conn) error {
	return alterPlpgsql(ctx, conn, heldSchemas, "DROP")
}

// holdSchemas makes the appliance's schemas members of plpgsql again.
func holdSchemas(ctx context.Context, conn *pgx.Conn) error {
	return alterPlpgsql(ctx, conn, superuserSchemas, "ADD")
}

func alterPlpgsql(ctx context.Context, conn *pgx.Conn, schemas, change string) error {
	names, err := collect(ctx, conn, schemas)
	for _, name := range names {
		if err == nil {
			_, err = conn.Exec(ctx, "ALTER EXTENSION plpgsql "+change+" SCHEMA "+quoteName(name))
		}
	}
	if err != nil {
		return fmt.Errorf("schemas of the appliance: %w", err)
	}
	return nil
}

func collect(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]string, error) {
	rows, _ := conn.Query(ctx, query, args...)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
