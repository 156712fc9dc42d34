package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
			taken, err := analyze(ctx, to, old.tenant)
			if err != nil {
				return fmt.Errorf("take statistics: %w", err)
			}
			done.Notes = append(done.Notes, taken...)
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
		if err := all(ctx, conn, []string{t.functionPrivileges(), keptDefaults}); err != nil {
			return fmt.Errorf("set privileges: %w", err)
		}
		known, err := Extensions(ctx, conn)
		if err != nil {
			return err
		}
		if err := RefuseMissing(MissingExtensions(known), u.To.Bin.Major); err != nil {
			return err
		}
		done.Updates = append(done.Updates, slices.DeleteFunc(known, func(x Extension) bool { return x.Update() == "" })...)
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

// keepsStatistics is the first major version whose pg_upgrade brings the planner's
// statistics over.
const keepsStatistics = 18

// analyzeLimit bounds how long clients wait for statistics: an expression of an index
// is the tenant's code.
const analyzeLimit = time.Minute

// analyze takes the planner's statistics, unless pg_upgrade has brought them over. It
// does so as the owner, because it runs the tenant's code. The note says that they are
// not complete.
func analyze(ctx context.Context, spec Spec, tenant names) (notes []string, err error) {
	if spec.Bin.Major >= keepsStatistics {
		return nil, nil
	}
	conn, err := connectAs(ctx, spec, nil, tenant.database, tenant.owner)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := all(ctx, conn, []string{
		fmt.Sprintf("SET statement_timeout = %d", analyzeLimit.Milliseconds()), `SET search_path = "$user", public, ` + extensionSchema,
	}); err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, "ANALYZE")
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return []string{fmt.Sprintf("the planner's statistics are not complete (%s): run ANALYZE", pg.Message)}, nil
	}
	return nil, err
}
