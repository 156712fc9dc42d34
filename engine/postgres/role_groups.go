package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/engine/model"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The groups have the privileges of the roles that read and write. Nobody can log in as a group. Each is made with the
// first role that needs it, so that a database without such roles has no trace of them in its dumps, and is never
// dropped. Its comment is set once it has the privileges on what the owner had made before: nothing is granted again
// then, so what an owner revokes stays revoked. While prepared transactions hide tables that were made before, the
// comment ends with lateMark and the OIDs of these and of their schemas, which are granted once they show.
const (
	readGroup  = "holdfast_read"
	writeGroup = "holdfast_write"
	groupMark  = "holdfast: group of roles"
	lateMark   = groupMark + ", later "
)

// groupOf returns the role whose privileges a role with the access has.
func (t Tenant) groupOf(access model.RoleAccess) string {
	switch access {
	case model.AccessRead:
		return readGroup
	case model.AccessWrite:
		return writeGroup
	case model.AccessCreate:
		return createGroup
	default:
		return t.Owner
	}
}

// accesses returns the accesses that roles of t have whose groups have privileges in the tenant's database.
func (t Tenant) accesses() (needed []model.RoleAccess) {
	for _, access := range []model.RoleAccess{model.AccessRead, model.AccessWrite} {
		if slices.ContainsFunc(t.Roles, func(r ClientRole) bool { return r.Access == access }) {
			needed = append(needed, access)
		}
	}
	return needed
}

// makeGroup returns the statement that creates a group without privileges, unless there is one.
func makeGroup(access model.RoleAccess) string {
	group := Tenant{}.groupOf(access)
	return fmt.Sprintf(`DO $$ BEGIN
		IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = %s) THEN CREATE ROLE %s %s; END IF; END $$`, quoteLiteral(group), quoteName(group), closedRole)
}

// groupPrivileges are what a group may do with the owner's tables and sequences. Writing is what pg_write_all_data
// allows, so neither TRUNCATE, which row-level security does not limit, nor TRIGGER and REFERENCES.
func groupPrivileges(access model.RoleAccess) (tables, sequences string) {
	if access == model.AccessRead {
		return "SELECT", "SELECT"
	}
	return "SELECT, INSERT, UPDATE, DELETE", "SELECT, USAGE, UPDATE"
}

// groupDefaults returns the statement, run in the tenant's database, that gives a group its privileges on what the owner
// will make.
func groupDefaults(access model.RoleAccess) string {
	tables, sequences := groupPrivileges(access)
	return fmt.Sprintf(`DO $$ DECLARE granted text; BEGIN
		FOREACH granted IN ARRAY ARRAY['%s ON TABLES', '%s ON SEQUENCES', 'USAGE ON SCHEMAS'] LOOP
			EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %%s GRANT %%s TO %s',
				(SELECT datdba::regrole FROM pg_database WHERE datname = current_database()), granted);
		END LOOP; END $$`, tables, sequences, Tenant{}.groupOf(access))
}

// groupGrants returns the statement, run in the tenant's database, that gives a group its privileges on what the owner
// has made, or, if its comment says what was hidden then, on what shows of that now. It sets the comment. The owner is the
// grantor.
func groupGrants(access model.RoleAccess) string {
	tables, sequences := groupPrivileges(access)
	return fmt.Sprintf(`DO $$ DECLARE
		owner regrole := (SELECT datdba FROM pg_database WHERE datname = current_database());
		known oid[] := substring(shobj_description('%[1]s'::regrole, 'pg_authid') from '^%[2]s(.*)$');
		late oid[] := ARRAY(SELECT object FROM (%[3]s) h WHERE prepared AND (known IS NULL OR object = ANY (known)));
		made oid;
		granted text;
	BEGIN
		FOR made, granted IN
			SELECT oid, format('USAGE ON SCHEMA %%I', nspname) FROM pg_namespace WHERE nspowner = owner OR nspname = 'public'
			UNION ALL
			SELECT c.oid, format(CASE relkind WHEN 'S' THEN '%[4]s ON SEQUENCE %%I.%%I' ELSE '%[5]s ON TABLE %%I.%%I' END, nspname, relname)
			FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
			WHERE relowner = owner AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND relpersistence <> 't'
		LOOP
			IF known IS NULL OR made = ANY (known) THEN
				EXECUTE format('GRANT %%s TO %[1]s', granted);
				late := array_remove(late, made);
			END IF;
		END LOOP;
		EXECUTE format('COMMENT ON ROLE %[1]s IS %%L', CASE late WHEN '{}' THEN '%[6]s' ELSE '%[2]s' || late::text END);
	END $$`, Tenant{}.groupOf(access), lateMark, hiddenObjects, sequences, tables, groupMark)
}

// lockPatience is how long a change of a role waits for the locks of tenants' sessions.
const lockPatience = 5 * time.Second

// ErrLocked means that tenants' sessions hold locks on what a role's change must change.
var ErrLocked = errors.New("open transactions hold locks on the database's objects")

// PrepareAccess gives the groups of t's roles the privileges that they lack, which the first role of an access needs. It
// changes nothing that a client can see until it has succeeded. The error is ErrLocked if transactions of tenants that
// have changed tables do not end in time. For what prepared transactions have shown since, it is left to the next time. conn
// is the superuser's, in the database postgres.
func PrepareAccess(ctx context.Context, conn *pgx.Conn, t Tenant) error {
	for _, access := range t.accesses() {
		var mark string
		err := conn.QueryRow(ctx, "select coalesce((select shobj_description(oid, 'pg_authid') from pg_roles where rolname = $1), '')", t.groupOf(access)).Scan(&mark)
		if err == nil && mark != groupMark {
			err = inOtherDatabase(ctx, conn, t.Database, func(there *pgx.Conn) error {
				if strings.HasPrefix(mark, lateMark) {
					return unlessLocked(true, runBriefly(ctx, there, []string{groupGrants(access)}, time.Now().Add(lockPatience/5)))
				}
				return t.prepareGroup(ctx, there, access)
			})
		}
		if err != nil {
			return fmt.Errorf("prepare roles that %s: %w", access, err)
		}
	}
	return nil
}

// prepareGroup gives a group its privileges, in the tenant's database: first on what will be made, then on what there
// is. In between it waits for transactions that have created something before the first step, without having shown it. It does
// not wait for prepared ones, which may stay, and come back with a restore: the comment says what they hide.
func (t Tenant) prepareGroup(ctx context.Context, conn *pgx.Conn, access model.RoleAccess) error {
	deadline := time.Now().Add(lockPatience)
	if err := runBriefly(ctx, conn, []string{makeGroup(access), groupDefaults(access), keptDefaults}, deadline); err != nil {
		return err
	}
	for {
		var hidden bool
		if err := conn.QueryRow(ctx, "select exists ("+hiddenObjects+" and pid is not null)").Scan(&hidden); err != nil {
			return err
		}
		if !hidden {
			break
		}
		if time.Now().After(deadline) {
			return ErrLocked
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return runBriefly(ctx, conn, []string{groupGrants(access), t.functionPrivileges(), keptDefaults}, deadline)
}

// hiddenObjects is the query of the tables of this database that a transaction has created but not committed, and of the
// schemas that are made with them: their locks show, and their rows in the catalogs do not. Those of a prepared transaction
// are not held by a session.
const hiddenObjects = `select coalesce(relation, objid) as object, pid is null as prepared from pg_locks l
	where l.granted and database = (select oid from pg_database where datname = current_database())
	and (locktype = 'relation' and mode = 'AccessExclusiveLock' and not exists (select from pg_class where oid = l.relation)
		or locktype = 'object' and classid = 'pg_namespace'::regclass and not exists (select from pg_namespace where oid = l.objid))`

// runBriefly is run, waiting for locks until the deadline. A row of a catalog that another transaction has changed
// meanwhile fails the whole: it is tried again.
func runBriefly(ctx context.Context, conn *pgx.Conn, statements []string, deadline time.Time) error {
	for {
		left := max(time.Until(deadline), time.Millisecond)
		err := run(ctx, conn, append([]string{fmt.Sprintf("SET LOCAL lock_timeout = %d", left.Milliseconds())}, statements...))
		pg, ok := errors.AsType[*pgconn.PgError](err)
		switch {
		case ok && pg.Code == "55P03": // lock_not_available
			return ErrLocked
		case !ok || !strings.HasPrefix(pg.Message, "tuple concurrently"):
			return err
		case time.Now().After(deadline):
			return ErrLocked
		}
	}
}
