package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"holdfast/engine/model"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Roles with access to create make databases beside the tenant's, for tests and migrations. These databases belong to a
// group that nobody can log in as: its members begin their sessions as the group (the setting role), so each may use and
// drop what another has made, and nothing is lost with a role. The group has no privilege in the tenant's database, and
// its members are not the owner: who can connect to another database can drop or rename the one that they own.
const createGroup = "holdfast_create"

// MaxBeside is how many databases roles may make beside the tenant's.
const MaxBeside = 50

// ErrTooManyDatabases means that there are [MaxBeside] databases beside the tenant's.
var ErrTooManyDatabases = fmt.Errorf("there are %d databases beside the tenant's", MaxBeside)

// The conditions on rows of pg_database: tenantMade holds for the tenant's and those beside it, and invalidated for one
// whose DROP was interrupted: it has no data, and nothing but another DROP is possible.
const (
	tenantMade  = "datname NOT IN ('postgres', 'template0', 'template1')"
	invalidated = "datconnlimit = -2"
)

// admitGroup is the statement, run in the database postgres, that lets the group in there: createdb, Django and Rails say
// CREATE and DROP DATABASE there. The group may do nothing else in it: it owns nothing and has no privilege but CONNECT, and
// what everybody may do in a database without one is taken from PUBLIC, which only the superuser is not.
const admitGroup = `DO $$ DECLARE f regprocedure; found bool := false; BEGIN
	FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ '` + ownersFunctions + `'
		AND has_function_privilege('public', oid, 'EXECUTE')
	LOOP
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
		found := true;
	END LOOP;
	IF found THEN ` + concealPrivileges + ` END IF;
	REVOKE ALL ON SCHEMA public FROM PUBLIC;
	GRANT CONNECT ON DATABASE postgres TO ` + createGroup + `;
	END $$`

// limitCreation is the statement that lets the group create databases while it has members and there are less than
// [MaxBeside]. It waits for a change of roles, such as one that makes the first member, before it counts. Every member may
// change the group's password and settings, which nothing uses; this resets the password.
var limitCreation = fmt.Sprintf(`DO $$ DECLARE may bool; BEGIN
	LOCK TABLE pg_authid IN ROW EXCLUSIVE MODE;
	SELECT EXISTS (SELECT FROM pg_auth_members WHERE roleid = r.oid) AND (SELECT count(*) FROM pg_database WHERE %s) <= %d
		INTO may FROM pg_roles r WHERE rolname = '%s';
	IF may IS NOT NULL THEN
		EXECUTE 'ALTER ROLE %[3]s NOLOGIN NOSUPERUSER NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD NULL ' || CASE WHEN may THEN 'CREATEDB' ELSE 'NOCREATEDB' END;
	END IF; END $$`, tenantMade, MaxBeside, createGroup)

// LimitCreation lets roles create databases, or no longer, as their number demands. conn is the superuser's, in the
// database postgres.
func LimitCreation(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, limitCreation); err != nil {
		return fmt.Errorf("limit the number of databases: %w", err)
	}
	return nil
}

// CreateBeside makes a database for the group, unless there is one of that name. The error is [ErrTooManyDatabases] if there
// are [MaxBeside]. conn is the superuser's, in the database postgres.
func CreateBeside(ctx context.Context, conn *pgx.Conn, name string) error {
	var found bool
	var count int
	err := conn.QueryRow(ctx, "select coalesce(bool_or(datname = $1), false), count(*) - 1 from pg_database where "+tenantMade, name).Scan(&found, &count)
	if err == nil && found {
		return nil
	}
	if err == nil && count >= MaxBeside {
		return ErrTooManyDatabases
	}
	if err == nil {
		_, err = conn.Exec(ctx, makeGroup(model.AccessCreate))
	}
	if err == nil {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+quoteName(name)+" OWNER "+createGroup)
	}
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// Creating returns the data directories, by id, of the running instances whose rules admit roles that create databases.
// Those that only the appliance uses, such as trial restores, admit none.
func (s *Supervisor) Creating() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]string{}
	for id, i := range s.instances {
		i.mu.Lock()
		if i.state == StateRunning && len(i.spec.HBA.Creators) > 0 && len(i.spec.HBA.Allow) > 0 {
			found[id] = i.spec.Dir
		}
		i.mu.Unlock()
	}
	return found
}

// DatabaseDirectories returns the number of databases' directories in a data directory. It changes with each CREATE and
// DROP DATABASE.
func DatabaseDirectories(dir string) (int, error) {
	found, err := os.ReadDir(filepath.Join(dir, "base"))
	if err != nil {
		return 0, fmt.Errorf("count databases: %w", err)
	}
	return len(found), nil
}

// makeWay renames the database beside the tenant's that has the name which the tenant's is to get, if there is one, and
// opens it: see closeForRename.
func makeWay(name string) string {
	return fmt.Sprintf(`DO $$ DECLARE next name := left(%[1]s, 40) || '_' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 12); BEGIN
		IF EXISTS (SELECT FROM pg_database WHERE datname = %[1]s) THEN
			EXECUTE format('ALTER DATABASE %%I RENAME TO %%I', %[1]s, next);
			EXECUTE format('ALTER DATABASE %%I WITH ALLOW_CONNECTIONS true', next);
		END IF; END $$`, quoteLiteral(name))
}

// openDatabases is the statement that opens all databases which a condition selects, whatever their owners have set.
// It quotes their names in the server: in a database of another encoding, tenants can make names that are not UTF-8. A name in the
// condition may have $$.
func openDatabases(condition, options string) string {
	return "DO " + quoteLiteral(fmt.Sprintf(`DECLARE d name; BEGIN FOR d IN SELECT datname FROM pg_database WHERE NOT %s AND %s LOOP
		EXECUTE format('ALTER DATABASE %%I WITH %s', d); END LOOP; END`, invalidated, condition, options))
}

// dropInvalidated drops the databases whose DROP was interrupted.
func dropInvalidated(ctx context.Context, conn *pgx.Conn) error {
	names, err := namesIn(ctx, conn, "select datname::text from pg_database where "+invalidated)
	for _, name := range names {
		if err == nil {
			err = DropDatabase(ctx, conn, name)
		}
	}
	return err
}

// isClosed reports whether a session could not begin because the database admits none.
func isClosed(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "55000" // object_not_in_prerequisite_state
}

// creators reports whether t has roles that may create databases.
func (t Tenant) creators() bool {
	return slices.ContainsFunc(t.Roles, func(r ClientRole) bool { return r.Access == model.AccessCreate })
}
