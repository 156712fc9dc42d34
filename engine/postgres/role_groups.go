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
// then, so what an owner revokes stays revoked.
const (
	readGroup  = "holdfast_read"
	writeGroup = "holdfast_write"
	groupMark  = "holdfast: group of roles"
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
// has made. The owner is the grantor.
func groupGrants(access model.RoleAccess) string {
	tables, sequences := groupPrivileges(access)
	return fmt.Sprintf(`DO $$ DECLARE
		owner regrole := (SELECT datdba FROM pg_database WHERE datname = current_database());
		granted text;
	BEGIN
		FOR granted IN
			SELECT format('USAGE ON SCHEMA %%I', nspname) FROM pg_namespace WHERE nspowner = owner OR nspname = 'public'
			UNION ALL
			SELECT format(CASE relkind WHEN 'S' THEN '%s ON SEQUENCE %%I.%%I' ELSE '%s ON TABLE %%I.%%I' END, nspname, relname)
			FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
			WHERE relowner = owner AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND relpersistence <> 't'
		LOOP
			EXECUTE format('GRANT %%s TO %s', granted);
		END LOOP; END $$`, sequences, tables, Tenant{}.groupOf(access))
}

// lockPatience is how long a change of a role waits for the locks of tenants' sessions.
const lockPatience = 5 * time.Second

// ErrLocked means that tenants' sessions hold locks on what a role's change must change.
var ErrLocked = errors.New("open transactions hold locks on the database's objects")

// PrepareAccess gives the groups of t's roles the privileges that they lack, which the first role of an access needs. It
// changes nothing that a client can see until it has succeeded. The error is ErrLocked if transactions of tenants that
// have changed tables do not end in time. conn is the superuser's, in the database postgres.
func PrepareAccess(ctx context.Context, conn *pgx.Conn, t Tenant) error {
	for _, access := range t.accesses() {
		var done bool
		err := conn.QueryRow(ctx, "select exists (select from pg_roles where rolname = $1 and shobj_description(oid, 'pg_authid') = $2)",
			t.groupOf(access), groupMark).Scan(&done)
		if err == nil && !done {
			err = inOtherDatabase(ctx, conn, t.Database, func(there *pgx.Conn) error { return t.prepareGroup(ctx, there, access) })
		}
		if err != nil {
			return fmt.Errorf("prepare roles that %s: %w", access, err)
		}
	}
	return nil
}

// prepareGroup gives a group its privileges, in the tenant's database: first on what will be made, then on what there
// is. In between it waits for transactions that have created something before the first step, without having shown it. It does
// not wait for prepared ones, which may stay, and come back with a restore: while there are any, the group is not marked, so the
// next time grants it what they have shown.
func (t Tenant) prepareGroup(ctx context.Context, conn *pgx.Conn, access model.RoleAccess) error {
	var prepared bool
	deadline := time.Now().Add(lockPatience)
	if err := runBriefly(ctx, conn, []string{makeGroup(access), groupDefaults(access), keptDefaults}, deadline); err != nil {
		return err
	}
	for {
		var hidden bool
		if err := conn.QueryRow(ctx, hiddenTables).Scan(&hidden, &prepared); err != nil {
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
	statements := []string{groupGrants(access), t.functionPrivileges(), keptDefaults}
	if !prepared {
		statements = append(statements, "COMMENT ON ROLE "+quoteName(t.groupOf(access))+" IS "+quoteLiteral(groupMark))
	}
	return runBriefly(ctx, conn, statements, deadline)
}

// hiddenTables reports whether there are tables in this database that a session's transaction has created but not committed,
// and whether there are such of prepared transactions: their locks show, and their rows in pg_class do not.
const hiddenTables = `select coalesce(bool_or(pid is not null), false), coalesce(bool_or(pid is null), false)
	from pg_locks l where locktype = 'relation' and mode = 'AccessExclusiveLock' and granted
	and database = (select oid from pg_database where datname = current_database())
	and not exists (select from pg_class where oid = l.relation)`

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
