package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// creatorAttacks are what a role that creates databases tries from the tenant's database and from its own: everything
// that would reach the tenant's, PostgreSQL's own, or another role. Each fails with one of the SQLSTATEs.
func creatorAttacks() []attack {
	one := func(state string, statements ...string) (rows []attack) {
		for _, s := range statements {
			rows = append(rows, row(s, state, s))
		}
		return rows
	}
	return append(one(noPrivilege,
		// The tenant's database.
		"alter database app rename to gone", "drop database app", "drop database app with (force)", "alter database app owner to holdfast_create",
		"alter database app owner to client_create", "alter database app is_template true", "alter database app allow_connections false", "alter database app connection limit 0",
		"alter database app set work_mem = '1MB'", "alter database app reset all", "alter database app set tablespace pg_default", "create database copy template app",
		"create database copy template app strategy file_copy", "create database copy template postgres", "comment on database app is 'x'",
		"alter database app refresh collation version",
		// PostgreSQL's own.
		"drop database postgres", "alter database postgres rename to gone", "alter database template1 is_template false", "alter database template1 rename to gone",
		"alter database template0 allow_connections true", "alter database postgres owner to holdfast_create", "comment on database postgres is 'x'",
		"alter database postgres set search_path = x", "alter database template1 set tablespace pg_default",
		// Roles.
		"set role app", "set role app_readonly", "set role holdfast", "create role x", "create database other owner app", "create database other owner holdfast", "create database other owner app_readonly",
		"alter role holdfast_create superuser", "alter role holdfast_create createrole", "alter role holdfast_create createdb login", "alter role holdfast_create replication",
		"alter role holdfast_create bypassrls", "alter role client_create createdb", "drop role holdfast_create",
		"grant holdfast_create to app", "grant app to holdfast_create", "grant holdfast to holdfast_create", "grant pg_read_all_data to holdfast_create", "comment on role holdfast_create is 'x'",
		"comment on role client_create is 'holdfast: role with access owner'", "reassign owned by app to holdfast_create", "drop owned by app", "alter database mine owner to app",
		"alter database mine owner to holdfast", "alter database theirs owner to app_readonly",
		// Settings that only a superuser changes, on a database of its own.
		"alter database mine set session_preload_libraries = 'x'", "alter database mine set log_statement = 'none'", "alter database mine set temp_file_limit = -1",
		"alter database mine set session_replication_role = replica", "alter database mine set allow_system_table_mods = on", "alter database mine set zero_damaged_pages = on",
		"alter database mine set lo_compat_privileges = on", "alter database mine set pg_stat_statements.track = none",
		"set session_authorization = holdfast", "alter system set work_mem = '8MB'",
		// The machine and what is outside of any database.
		"create tablespace t location '/tmp'", "copy (select 1) to '/tmp/holdfast-attack'", "copy (select 1) to program 'id'", "select pg_read_file('postgresql.conf')", "select pg_ls_dir('.')",
		"select lo_import('/etc/passwd')", "select lo_export(1, '/tmp/holdfast-attack')", "create extension dblink", "create extension postgres_fdw", "create extension file_fdw",
		"create extension amcheck", "create event trigger e on ddl_command_start execute function suppress_redundant_updates_trigger()",
		"create foreign data wrapper w", "create function f() returns int language c as 'libc.so.6', 'system'", "create function f() returns int language internal as 'pg_backend_pid'",
		"select pg_create_logical_replication_slot('s', 'pgoutput')", "select pg_create_physical_replication_slot('s')",
		"select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'", "select pg_reload_conf()", "checkpoint", "select pg_switch_wal()",
		"select * from pg_authid", "select * from pg_subscription", "update pg_database set datistemplate = true", "select pg_stat_reset()", "select pg_log_backend_memory_contexts(1)",
	), append(one("55006 42501 0A000", "drop database template0", "drop database template1"), append(
		one("22023 42501 0A000", "create subscription s connection 'host=127.0.0.1' publication p"),
		one("42501 0A000 22023", "create language c", "alter role holdfast_create rename to x", "security label on database app is 'x'", "security label on database mine is 'x'", "create database other tablespace pg_global")...)...)...)
}

func creator(t *testing.T, d *postgrestest.Database) postgrestest.ClientRole {
	t.Helper()
	r := d.AddRole(t, model.AccessCreate)
	allowed(t, r.Connect(t), "create database mine", "create database theirs strategy file_copy template template0 encoding 'SQL_ASCII' locale_provider libc lc_collate 'C' lc_ctype 'C'")
	return r
}

// A role that creates databases reaches nothing but those.
func TestCreatorAttacks(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		r := creator(t, d)
		owner := d.Owner(t)
		allowed(t, owner, "create table secret as select 1 as n", "create table shared as select 2 as n")
		for _, database := range []string{"app", "mine", "postgres"} {
			connect := func(tb testing.TB) *pgx.Conn {
				conn := r.ConnectTo(tb, database)
				if database == "postgres" { // where it may use no schema but this
					allowed(t, conn, "set search_path = pg_catalog")
				}
				return conn
			}
			run(t, d, connect, creatorAttacks())
			run(t, d, func(tb testing.TB) *pgx.Conn {
				conn := connect(tb)
				if _, err := conn.Exec(tb.Context(), "set role none"); err != nil {
					tb.Fatal(err)
				}
				return conn
			}, append(creatorAttacks(), row("as itself", noPrivilege, "create database other"), row("for itself", noPrivilege, "alter database mine owner to client_create"),
				row("rename as itself", noPrivilege, "alter database mine rename to other")))
		}
		refused(t, r.Connect(t), noPrivilege, []string{
			"table secret", "insert into shared values (1)", "create table t (n int)", "create temp table t (n int)", "create schema s", "select lo_create(0)",
			"select pg_advisory_lock(1)", "grant select on secret to holdfast_create", "create extension pgcrypto",
		})
		// In postgres, where tools say CREATE DATABASE, it may do nothing else.
		allowed(t, r.ConnectTo(t, "postgres"), "create database made", "drop database made", "create database made template template0", "set role none", "drop database made with (force)",
			"select count(*) from pg_stat_activity", "select pg_advisory_unlock_all()")
		refused(t, r.ConnectTo(t, "postgres"), noPrivilege+" 3F000", []string{
			"create table t (n int)", "create table public.t (n int)", "create temp table t (n int)", "create schema s", "select lo_create(0)", "select lo_from_bytea(0, 'x')",
			"select pg_advisory_lock(1)", "select pg_logical_emit_message(false, 'a', 'b')", "select txid_current()", "table public.pg_stat_statements",
			"select public.pg_stat_statements_reset()", "create extension pgcrypto", "create publication p", "do 'begin lock pg_class in row exclusive mode; end'",
			"do 'begin lock pg_database in share mode; end'", "reindex system postgres", "reindex table pg_class", "create type t as (n int)", "create type public.t as (n int)",
			"create text search dictionary d (template = simple)", "create aggregate public.a (int) (sfunc = int4pl, stype = int)", "create cast (int as text) with inout",
			"alter role app in database postgres set work_mem = '1MB'",
		})
		for _, login := range []string{d.URL("app", d.Tenant.OwnerPassword), d.URL("app_readonly", d.Tenant.ReadOnlyPassword)} {
			if err := tryConnect(t, strings.Replace(login, "/app?", "/postgres?", 1)); !refusedByRules(err) {
				t.Errorf("another role connects to postgres: %v", err)
			}
		}
		if err := tryConnect(t, strings.Replace(r.URL(), "/app?", "/template1?", 1)); !refusedByRules(err) {
			t.Errorf("it connects to template1: %v", err)
		}
		// In its own it may do what the owner may in the tenant's.
		allowed(t, r.ConnectTo(t, "mine"), "create table t (n int)", "create temp table tt (n int)", "create schema s", "select lo_create(0)", "select pg_advisory_lock(1)",
			"create extension pgcrypto", "drop schema public cascade", "create schema public", "alter database mine set work_mem = '8MB'")
		// The sessions are the role's, and only as itself may it end them.
		allowed(t, r.Connect(t), "set role none", "drop database mine with (force)", "set role holdfast_create", "alter database theirs rename to mine", "drop database mine", "create database mine")
		if err := tryConnect(t, strings.Replace(d.URL("app", d.Tenant.OwnerPassword), "/app?", "/mine?", 1)); !refusedByRules(err) {
			t.Errorf("the owner connects to another database: %v", err)
		}
		if err := tryConnect(t, strings.Replace(d.URL("app_readonly", d.Tenant.ReadOnlyPassword), "/app?", "/mine?", 1)); !refusedByRules(err) {
			t.Errorf("the reader connects to another database: %v", err)
		}
	})
}

// What the owner might do to a database that a role has made, and with it to its own.
func TestOwnerReachesNoDatabaseBeside(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		creator(t, d)
		refused(t, d.Owner(t), noPrivilege, []string{
			"drop database mine", "alter database mine owner to app", "alter database mine rename to x", "create database x", "create database x template mine", "set role holdfast_create",
			"alter database app rename to x", "alter database app owner to holdfast_create", "grant connect on database app to client_create with grant option; set role client_create",
		})
		if found := harm(t, d.Superuser(t, "app")); len(found) > 0 {
			t.Errorf("afterwards: %s", strings.Join(found, "; "))
		}
	})
}

// Roles share what they create; nothing of it becomes the owner's, whose rights a function would lend, when a role is
// dropped or gets another access.
func TestCreatorsShareDatabases(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		gone, stays := d.AddRole(t, model.AccessCreate), d.AddNamedRole(t, "another", model.AccessCreate)
		allowed(t, gone.Connect(t), "create database mine")
		const trap = "create function trap() returns text language plpgsql security definer as 'begin alter database app is_template true; return current_user; end'; grant execute on function trap() to public"
		allowed(t, gone.ConnectTo(t, "mine"), "create table made (n int)", "set role none", "create schema own", "grant usage on schema own to public", "set search_path = own", trap,
			"create table own.t (n int)", "alter database mine is_template true")
		allowed(t, stays.Connect(t), "alter database mine allow_connections false")
		dropRole(t, d, gone.Name)
		conn := stays.ConnectTo(t, "mine") // it was opened
		refused(t, conn, noPrivilege, []string{"select own.trap()"})
		allowed(t, conn, "insert into made values (1)", "insert into own.t values (1)", "drop schema own cascade")
		changed := d.AddNamedRole(t, "changes", model.AccessCreate)
		allowed(t, changed.ConnectTo(t, "mine"), "set role none", "create schema own", "grant usage on schema own to public", "set search_path = own", trap)
		setAccess(d, "changes", model.AccessOwner)
		provisioned(t, d)
		refused(t, stays.ConnectTo(t, "mine"), noPrivilege, []string{"select own.trap()"})
		setAccess(d, "changes", model.AccessRead)
		provisioned(t, d)
		dropRole(t, d, "another")
		dropRole(t, d, "changes")
		super := d.Superuser(t, "postgres")
		var owner string
		var may bool
		if err := super.QueryRow(t.Context(), "select datdba::regrole::text, rolcreatedb from pg_database, pg_roles where datname = 'mine' and rolname = 'holdfast_create'").Scan(&owner, &may); err != nil || owner != "holdfast_create" || may {
			t.Errorf("mine belongs to %s, and its group may create others: %v, %v", owner, may, err)
		}
		allowed(t, d.AddRole(t, model.AccessCreate).Connect(t), "alter database mine is_template false", "drop database mine")
	})
}

// A role cannot keep its removal, a rotation or a rename from happening by what it does to its databases.
func TestCreatorHoldsNothingUp(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		d.Spec.Config.Settings = map[string]string{"max_prepared_transactions": "5"}
		if err := d.Supervisor.Reconfigure(t.Context(), d.Spec.ID, time.Minute, func(s *postgres.Spec) { s.Config.Settings = d.Spec.Config.Settings }); err != nil {
			t.Fatal(err)
		}
		r := creator(t, d)
		other := d.AddNamedRole(t, "another", model.AccessCreate)
		second := r.ConnectTo(t, "mine") // before its settings end every session
		allowed(t, r.ConnectTo(t, "postgres"), "set role none", "alter default privileges grant select on tables to public", "set role holdfast_create",
			"alter default privileges grant select on tables to public")
		allowed(t, r.ConnectTo(t, "mine"), "set role none", "create schema own", "create table own.t (n int)", "alter role client_create set local_preload_libraries = 'absent'",
			"begin", "alter role client_create set work_mem = '1MB'", "prepare transaction 'held'")
		allowed(t, second, "alter database mine set local_preload_libraries = 'absent'", "alter role holdfast_create password 'x'", "alter role holdfast_create set role = 'none'", "alter database mine set default_transaction_read_only = on",
			"alter database mine set search_path = own, pg_catalog", "alter database mine set statement_timeout = 1", "alter database mine connection limit 0")
		allowed(t, other.Connect(t), "alter database mine allow_connections false")
		provisioned(t, d)
		// Names: the tenant's database takes the one it is to have, and is found whatever the others are called.
		conn := other.Connect(t)
		allowed(t, conn, "create database renamed", "create database aaa oid 16384")
		session := other.ConnectTo(t, "renamed")
		d.Tenant.Database = "renamed"
		provisioned(t, d)
		if _, err := session.Exec(t.Context(), "select 1"); err == nil {
			t.Error("a session in the database that had the name goes on")
		}
		super := d.Superuser(t, "postgres")
		var moved, others int
		if err := super.QueryRow(t.Context(), `select count(*) filter (where datname ~ '^renamed_[0-9a-f]{12}$' and datallowconn and datdba = 'holdfast_create'::regrole),
			count(*) filter (where datname = 'renamed' and datdba = 'app'::regrole and datallowconn) from pg_database`).Scan(&moved, &others); err != nil || moved != 1 || others != 1 {
			t.Errorf("%d moved, %d the tenant's, %v", moved, others, err)
		}
		d.Tenant.Database = "aaa" // as a restore, which finds another name than the record's
		provisioned(t, d)
		d.Tenant.Database = "app"
		provisioned(t, d)
		dropRole(t, d, r.Name)
		dropRole(t, d, other.Name)
		if found := harm(t, d.Superuser(t, "app")); len(found) > 0 {
			t.Errorf("afterwards: %s", strings.Join(found, "; "))
		}
	})
}

// A database whose DROP was interrupted is in nobody's way.
func TestInvalidDatabase(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		r := creator(t, d)
		allowed(t, r.ConnectTo(t, "mine"), "set role none", "create schema own")
		super := d.Superuser(t, "postgres")
		allowed(t, super, "update pg_database set datconnlimit = -2 where datname = 'mine'")
		provisioned(t, d)
		dropRole(t, d, r.Name)
	})
}

// The number of databases is bounded, and dropping some makes room.
func TestCreationIsBounded(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	conn, super := d.AddRole(t, model.AccessCreate).Connect(t), d.Superuser(t, "postgres")
	limit := func() {
		t.Helper()
		if err := postgres.LimitCreation(t.Context(), super); err != nil {
			t.Fatal(err)
		}
	}
	before, err := postgres.DatabaseDirectories(d.Spec.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := range postgres.MaxBeside {
		limit()
		allowed(t, conn, fmt.Sprintf("create database d%d strategy file_copy", n))
	}
	if after, err := postgres.DatabaseDirectories(d.Spec.Dir); err != nil || after != before+postgres.MaxBeside {
		t.Errorf("%d directories, then %d, %v", before, after, err)
	}
	limit()
	refused(t, conn, noPrivilege, []string{"create database more", "alter role holdfast_create createdb"})
	provisioned(t, d)
	refused(t, conn, noPrivilege, []string{"create database more"})
	allowed(t, conn, "drop database d7")
	limit()
	allowed(t, conn, "create database more")
	if creating := d.Supervisor.Creating(); len(creating) != 1 || creating[d.Spec.ID] != d.Spec.Dir {
		t.Errorf("creating: %v", creating)
	}
	d.Spec.HBA.Allow = nil
	if err := d.Supervisor.Update(t.Context(), d.Spec.ID, d.Spec.HBA); err != nil {
		t.Fatal(err)
	}
	if creating := d.Supervisor.Creating(); len(creating) > 0 {
		t.Errorf("one that admits nobody is creating: %v", creating)
	}
}

// Figures and sessions are those of all databases.
func TestUsageCoversDatabasesBeside(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	r, super := d.AddRole(t, model.AccessCreate), d.Superuser(t, "postgres")
	before, err := postgres.Stats(t.Context(), super, "app")
	if err != nil {
		t.Fatal(err)
	}
	allowed(t, r.Connect(t), "create database mine")
	conn := r.ConnectTo(t, "mine")
	allowed(t, conn, "select 'there'")
	after, err := postgres.Stats(t.Context(), super, "app")
	if err != nil || after.SizeBytes < before.SizeBytes+(5<<20) || after.Connections < before.Connections+1 {
		t.Errorf("%+v, then %+v, %v", before, after, err)
	}
	sessions, err := postgres.Sessions(t.Context(), super)
	if err != nil || len(sessions) == 0 {
		t.Fatal(len(sessions), err)
	}
	last := sessions[len(sessions)-1]
	if last.Database != "mine" || last.Query != "select 'there'" {
		t.Errorf("the last session is %+v", last)
	}
	if ended, err := postgres.TerminateSession(t.Context(), super, last.SessionID); err != nil || !ended {
		t.Errorf("ended %v, %v", ended, err)
	}
	testenv.Eventually(t, "its end", func() bool { _, err := conn.Exec(t.Context(), "select 1"); return err != nil })
	conn = r.ConnectTo(t, "mine")
	if n, err := postgres.TerminateSessions(t.Context(), super); err != nil || n == 0 {
		t.Errorf("%d ended, %v", n, err)
	}
	if _, err := conn.Exec(t.Context(), "select 1"); err == nil {
		t.Error("a session in another database goes on")
	}
}
