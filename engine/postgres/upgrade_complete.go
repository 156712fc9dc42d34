package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// complete gives the new server what pg_upgrade does not bring over, and takes
// statistics. The settings come last: until then no session has a tenant's.
func (u Upgrade) complete(ctx context.Context, old oldCluster) (done Upgraded, err error) {
	to := u.To
	to.HBA = HBA{Database: old.tenant.database, Local: old.tenant.owner}
	err = u.within(ctx, to, func() error {
		return inDatabase(ctx, to, "postgres", func(conn *pgx.Conn) error {
			if err := all(ctx, conn, []string{ownStatements}); err != nil {
				return err
			}
			if done, err = u.completeTenant(ctx, old.tenant); err != nil {
				return err
			}
			if err := takeStatistics(ctx, to, old.tenant, &done); err != nil {
				return fmt.Errorf("take statistics: %w", err)
			}
			dropped, err := bringSettings(ctx, conn, old.settings)
			if err != nil {
				return fmt.Errorf("bring the settings over: %w", err)
			}
			done.Notes = append(done.Notes, dropped...)
			return nil
		})
	})
	if err != nil {
		return done, err
	}
	_, err = WriteHBA(to.Dir, HBA{})
	return done, err
}

// ownStatements creates the appliance's own view of statements, as in a new server.
const ownStatements = `DO $$ BEGIN
	IF current_setting('shared_preload_libraries') LIKE '%pg_stat_statements%' THEN
		CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public;
	END IF; END $$`

// completeTenant sets those privileges in the tenant's databases again that pg_upgrade
// loses, and refuses extensions whose files the machine lacks. What the read-only role
// may read is the owner's to change, and pg_upgrade keeps it.
func (u Upgrade) completeTenant(ctx context.Context, n names) (done Upgraded, err error) {
	t := Tenant{Database: n.database, Owner: n.owner, ReadOnly: n.readOnly}
	err = eachTenants(ctx, u.To, func(ctx context.Context, conn *pgx.Conn) error {
		if err := holdSchemas(ctx, conn); err != nil {
			return err
		}
		if conn.Config().Database == n.database { // those beside it have PostgreSQL's own privileges
			if err := all(ctx, conn, []string{t.functionPrivileges(), keptDefaults}); err != nil {
				return fmt.Errorf("set privileges: %w", err)
			}
		}
		known, err := Extensions(ctx, conn)
		if err != nil {
			return err
		}
		if err := RefuseMissing(MissingExtensions(known), u.To.Bin.Major); err != nil {
			return err
		}
		if conn.Config().Database == n.database {
			done.Updates = slices.DeleteFunc(known, func(x Extension) bool { return x.Update() == "" })
		}
		stale, err := collect(ctx, conn, staleCollations)
		done.Notes = append(done.Notes, stale...)
		return err
	})
	return done, err
}

// staleCollations returns notes about collations whose order may differ from that in which their indexes were built,
// because the new version was built with another library.
const staleCollations = `
	select format('the database sorts by version %2$s of its locale''s rules now, and its indexes were built by %3$s: '
		'run REINDEX DATABASE %1$I, then ALTER DATABASE %1$I REFRESH COLLATION VERSION', datname, pg_database_collation_actual_version(oid), datcollversion)
	from pg_database where datname = current_database() and datcollversion <> pg_database_collation_actual_version(oid)
	union all
	select format('the collation %1$s sorts by version %2$s of its rules now, and its indexes were built by %3$s: '
		'run REINDEX for the indexes that use it, then ALTER COLLATION %1$s REFRESH VERSION',
		oid::regcollation, pg_collation_actual_version(oid), collversion)
	from pg_collation where collversion <> pg_collation_actual_version(oid)`

// bringSettings sets again what prepareCopy has removed. It leaves out the settings
// that the new version does not know, and returns notes that name them. The values
// are written as they were: some cannot be expressed by ALTER, and the server ignores
// those that it refuses.
func bringSettings(ctx context.Context, conn *pgx.Conn, settings []roleSetting) (notes []string, err error) {
	if _, err := conn.Exec(ctx, "SET allow_system_table_mods = on"); err != nil {
		return nil, err
	}
	for _, row := range settings {
		gone, err := collect(ctx, conn, "select split_part(c, '=', 1) from unnest($1::text[]) c where "+unknownSetting, row.Config)
		if err != nil {
			return nil, err
		}
		for _, name := range gone {
			notes = append(notes, fmt.Sprintf("the setting %s of the database or of a role was dropped: this version does not have it", name))
		}
		if _, err := conn.Exec(ctx, `insert into pg_db_role_setting (setdatabase, setrole, setconfig)
			select $1::oid, $2::oid, kept from (select array_agg(c order by n) from unnest($3::text[]) with ordinality u (c, n) where not `+unknownSetting+`) k (kept)
			where kept is not null`, row.Database, row.Role, row.Config); err != nil {
			return nil, err
		}
	}
	_, err = conn.Exec(ctx, "RESET allow_system_table_mods")
	return notes, err
}

// unknownSetting holds for the item c, "name=value", if the server has no such setting.
// Those with a point in their names are made when they are set.
const unknownSetting = "(split_part(c, '=', 1) !~ '[.]' and current_setting(split_part(c, '=', 1), true) is null)"
