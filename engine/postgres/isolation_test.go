package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Tenant isolation, tested by real attacks: this machine's PostgreSQL decides, not
// its documentation. The tables follow attacks that have broken managed services:
// roles that may create or grant roles (Azure, "ExtraReplica"), objects given to
// the superuser whose code maintenance then runs (Cloud SQL), SECURITY DEFINER
// helpers and event triggers of the service (IBM, Aiven, Supabase), extension
// scripts and search paths (CVE-2018-1058, CVE-2020-14350, CVE-2022-2625),
// predefined roles, programs and files, and the way back over the local socket.

// attack is one row. Its statements run in order in one session: all but the last
// must succeed, and the last must fail with one of the SQLSTATEs. A row without
// SQLSTATEs may succeed: its failure shows in that no powers have changed (see
// harm).
type attack struct {
	name  string
	sql   []string
	state string
}

func row(name, state string, sql ...string) attack { return attack{name, sql, state} }

// run runs the rows, each in its own session.
func run(t *testing.T, d *postgrestest.Database, connect func(testing.TB) *pgx.Conn, rows []attack) {
	t.Helper()
	super := d.Superuser(t, "app")
	for _, a := range rows {
		t.Run(a.name, func(t *testing.T) {
			conn := connect(t)
			for i, statement := range a.sql {
				err := attempt(t, conn, statement)
				if i < len(a.sql)-1 || a.state == "" {
					if err != nil {
						t.Errorf("%s: %v", statement, err)
					}
					continue
				}
				if got := sqlState(err); got == "" || !strings.Contains(a.state, got) {
					t.Errorf("%s: %v, want SQLSTATE %s", statement, err, a.state)
				}
			}
			if found := harm(t, super); len(found) > 0 {
				t.Fatalf("afterwards: %s", strings.Join(found, "; "))
			}
		})
	}
}

// attempt runs a statement that should fail, for ten seconds at most: one that does
// not may wait for a client.
func attempt(t *testing.T, conn *pgx.Conn, statement string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := conn.Exec(ctx, statement)
	return err
}

// sqlState returns the SQLSTATE of a PostgreSQL error, otherwise "".
func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// clients are the roles of a tenant: its own, and those of postgrestest's AddRole.
const clients = `('app', 'app_readonly', 'client_read', 'client_write', 'client_owner', 'client_create')`

// heirs matches the names of the roles that own what dropped ones have left.
const heirs = `'^holdfast_left_[0-9]+$'`

// powers are queries that find what only a superuser could have made or changed,
// seen from inside the tenant's database. In a sound instance none returns a row.
var powers = map[string]string{
	"role": `select rolname || ' ' || concat_ws(',', case when rolsuper then 'superuser' end, case when rolcreaterole then 'createrole' end,
		case when rolcreatedb then 'createdb' end, case when rolreplication then 'replication' end, case when rolbypassrls then 'bypassrls' end)
		from pg_roles where rolname !~ '^pg_' and rolname not in ('holdfast', 'holdfast_dump')
		and (rolname not in ` + clients + ` and rolname not in ('holdfast_read', 'holdfast_write', 'holdfast_create') and rolname !~ ` + heirs + `
			or rolcanlogin and rolname ~ ` + heirs + ` or rolsuper or rolcreaterole
			or rolcreatedb and rolname <> 'holdfast_create' or rolreplication or rolbypassrls)`,
	"membership": `select member::regrole || ' in ' || roleid::regrole from pg_auth_members where (grantor <> 10 or admin_option or member::regrole::text !~ '^pg_'
		and (roleid::regrole::text not in ('pg_read_all_data', 'pg_use_reserved_connections') or member <> 'holdfast_dump'::regrole))
		and (grantor <> 10 or admin_option or (member::regrole::text, roleid::regrole::text) not in
			(('client_read', 'holdfast_read'), ('client_write', 'holdfast_write'), ('client_owner', 'app'), ('client_create', 'holdfast_create')))
		and (grantor <> 10 or admin_option or member::regrole::text <> 'app' or roleid::regrole::text !~ ` + heirs + `)`,
	"predefined role": `select role || ' has ' || power from (select rolname::text from pg_roles where rolname in ` + clients + ` or rolname ~ '^holdfast_(read|write|create)$' or rolname ~ ` + heirs + `) r(role),
		(values ('pg_execute_server_program'), ('pg_read_server_files'), ('pg_write_server_files'), ('pg_read_all_data'), ('pg_write_all_data'), ('pg_monitor'),
			('pg_read_all_settings'), ('pg_signal_backend'), ('pg_checkpoint'), ('holdfast'), ('holdfast_dump')) p(power)
		where pg_has_role(role, power, 'member')`,
	"superuser's object": `select c.oid::regclass::text from pg_class c where relowner = 10 and oid >= 16384 and relkind not in ('t', 'i', 'c')
		and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
		union all select p.oid::regprocedure::text from pg_proc p where proowner = 10 and oid >= 16384
		and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = p.oid and deptype in ('e', 'i'))
		union all select nspname::text from pg_namespace where nspowner = 10 and oid >= 16384 and nspname !~ '^pg_(toast_)?temp_' and nspname <> 'extensions'`,
	"SECURITY DEFINER": `select oid::regprocedure::text from pg_proc where prosecdef and proowner = 10`,
	"in pg_catalog": `select p.oid::regprocedure::text from pg_proc p where pronamespace = 'pg_catalog'::regnamespace and oid >= 16384
		and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = p.oid and deptype in ('e', 'i'))
		union all select oid::regclass::text from pg_class where relnamespace = 'pg_catalog'::regnamespace and oid >= 16384`,
	"native code": `select oid::regprocedure::text from pg_proc p where oid >= 16384 and prolang <> all (select oid from pg_language where lanpltrusted
		or lanname = 'sql') and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = p.oid and deptype in ('e', 'i'))`,
	"untrusted extension": `select extname::text from pg_extension e where extname <> 'plpgsql' and not exists
		(select from pg_available_extension_versions v where v.name = e.extname and trusted)`,
	"language":      `select lanname::text from pg_language where oid >= 16384 and not lanpltrusted`,
	"event trigger": `select evtname::text from pg_event_trigger`,
	"foreign data":  `select fdwname::text from pg_foreign_data_wrapper union all select srvname::text from pg_foreign_server`,
	"subscription":  `select subname::text from pg_subscription`,
	"other database": `select role || ' in ' || datname from pg_database, (select rolname from pg_roles where rolname in ` + clients + ` or rolname ~ '^holdfast_(read|write|create)$' or rolname ~ ` + heirs + `) r(role)
		where datname in ('postgres', 'template1') and (has_database_privilege(role, datname, 'create,temp') or has_database_privilege(role, datname, 'connect')
			and not (datname = 'postgres' and (role = 'holdfast_create' or exists (select from pg_auth_members where roleid = to_regrole('holdfast_create') and member = to_regrole(quote_ident(role))))))`,
	"database": `select datname::text from pg_database where datname not in ('postgres', 'template0', 'template1', 'app') and datdba::regrole::text <> 'holdfast_create'
		union all select datname || ' is a template' from pg_database where datname = 'app' and (datistemplate or not datallowconn or datconnlimit <> -1)`,
	"tablespace":      `select spcname::text from pg_tablespace where oid >= 16384`,
	"slot":            `select slot_name::text from pg_replication_slots`,
	"parameter grant": `select parname from pg_parameter_acl`,
	"ALTER SYSTEM":    `select sourcefile || ': ' || name from pg_file_settings where sourcefile like '%auto.conf'`,
	"superuser's password": `select rolname::text from pg_authid where rolname not in ` + clients + ` and rolpassword is not null
		union all select rolname || ' has no SCRAM verifier' from pg_authid where rolname in ` + clients + ` and rolpassword not like 'SCRAM-SHA-256$%'`,
	"setting for all": `select array_to_string(setconfig, ',') from pg_db_role_setting where setdatabase = 0 and setrole = 0
		or setrole = 'holdfast'::regrole and array_to_string(setconfig, ',') not in
			('local_preload_libraries=', 'local_preload_libraries=,transaction_timeout=0')`,
	"owner of the database": `select datdba::regrole::text from pg_database where datname = 'app' and datdba::regrole::text <> 'app'
		union all select 'role comments: ' || string_agg(objoid::regrole || '=' || description, ',') from pg_shdescription
		where classoid = 'pg_authid'::regclass and not (objoid::regrole::text ~ '^client_(read|write|owner|create)$'
			and description = 'holdfast: role with access ' || substr(objoid::regrole::text, length('client_') + 1)
			or objoid::regrole::text in ('holdfast_read', 'holdfast_write') and description = 'holdfast: group of roles'
			or objoid::regrole::text ~ ` + heirs + ` and description ~ '^holdfast: left by the role client_') having string_agg(objoid::regrole::text, '') is distinct from 'app_readonly'`,
	"file": `select name from pg_ls_dir('.') name where name like 'attack%' union all
		select name from pg_ls_dir('/tmp') name where name like 'holdfast-attack%'`,
}

// harm lists what the powers find; conn is the superuser's, in the tenant's
// database.
func harm(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	var b strings.Builder
	for name, query := range powers {
		if b.Len() > 0 {
			b.WriteString("\nunion all ")
		}
		fmt.Fprintf(&b, "select '%s: ' || x from (%s) t(x)", strings.ReplaceAll(name, "'", "''"), query)
	}
	allowed(t, conn, "set quote_all_identifiers = off") // owners set it on their databases
	rows, err := conn.Query(t.Context(), b.String())
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// TestHarmIsSeen verifies that harm finds what each statement changes; the
// superuser runs them and rolls them back.
func TestHarmIsSeen(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	conn := d.Superuser(t, "app")
	if found := harm(t, conn); len(found) > 0 {
		t.Fatalf("in a fresh instance: %s", strings.Join(found, "\n"))
	}
	for want, statement := range map[string]string{
		"role: app superuser":        "alter role app superuser",
		"role: app createrole":       "alter role app createrole",
		"role: more":                 "create role more",
		"membership: app in pg_r":    "grant pg_read_all_stats to app",
		"predefined role: app has":   "grant pg_execute_server_program to app",
		"superuser's object: public": "create table public.t (n int)",
		"superuser's object: s":      "create schema s",
		"SECURITY DEFINER":           "create function public.f() returns int security definer language sql as 'select 1'",
		"in pg_catalog":              "set local allow_system_table_mods = on; create function pg_catalog.f() returns int language sql as 'select 1'",
		"native code":                "create function public.f() returns cstring language internal as 'pgsql_version'; alter function public.f() owner to app",
		"untrusted extension":        "create extension dblink schema public",
		"event trigger":              "create function public.f() returns event_trigger language plpgsql as 'begin end'; create event trigger e on ddl_command_start execute function public.f()",
		"foreign data":               "create foreign data wrapper w",
		"subscription":               "create subscription s connection '' publication p with (connect = false)",
		"parameter grant":            "grant set on parameter log_statement to app",
		"setting for all":            "alter role all set work_mem = '8MB'",
		"superuser's password":       "alter role holdfast password 'x'",
		"owner of the database: app": "alter database app owner to app_readonly",
		"owner of the database: rol": "comment on role app is 'x'",
	} {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		} else if found := harm(t, conn); !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("after %s: %q", statement, found)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	allowed(t, conn, "alter system set work_mem = '8MB'", "create database more")
	if found := strings.Join(harm(t, conn), "\n"); !strings.Contains(found, "ALTER SYSTEM") || !strings.Contains(found, "database: more") {
		t.Errorf("outside of a transaction: %s", found)
	}
}

// within returns a context for an operation of the appliance that an attack could
// block.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// ofPrograms is the URL of a role for PostgreSQL's own programs, some of which are
// built without TLS.
func ofPrograms(url string) string {
	return strings.Replace(url, "sslmode=require", "sslmode=prefer", 1)
}
