package postgres_test

import (
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
)

// What the owner must not be able to do, nor another role with the owner's access.
func TestOwnersAttacks(t *testing.T) {
	t.Parallel()
	t.Run("owner", func(t *testing.T) {
		d := postgrestest.Instance(t)
		ownersAttacks(t, d, d.Owner)
	})
	t.Run("another role", func(t *testing.T) {
		d := postgrestest.Instance(t)
		ownersAttacks(t, d, d.AddRole(t, model.AccessOwner).Connect)
	})
}

func ownersAttacks(t *testing.T, d *postgrestest.Database, connect func(testing.TB) *pgx.Conn) {
	for _, group := range []struct {
		name string
		rows []attack
	}{
		{"files", ownersFiles()},
		{"code", ownersCode()},
		{"roles", ownersRoles()},
		{"grants", ownersGrants()},
		{"gifts", ownersGifts()},
		{"settings", ownersSettings()},
		{"server", ownersServer()},
		{"eyes", ownersEyes()},
		{"ways out", ownersWaysOut()},
		{"extensions", ownersExtensions()},
		{"catalog", ownersCatalog()},
	} {
		t.Run(group.name, func(t *testing.T) { run(t, d, connect, group.rows) })
	}
}

func ownersFiles() []attack {
	return []attack{
		row("COPY to program", "42501", "copy (select 1) to program 'touch attack'"),
		row("COPY from program", "42501", "create temp table t (x text)", "copy t from program 'id'"),
		row("COPY from file", "42501", "create temp table t (x text)", "copy t from '/etc/passwd'"),
		row("COPY to file", "42501", "copy (select 1) to '/tmp/holdfast-attack'"),
		row("pg_read_file", "42501", "select pg_read_file('/etc/passwd')"),
		row("pg_read_file of the data directory", "42501", "select pg_read_file('PG_VERSION')"),
		row("pg_read_binary_file", "42501", "select pg_read_binary_file('global/pg_control')"),
		row("pg_ls_dir", "42501", "select pg_ls_dir('.')"),
		row("pg_stat_file", "42501", "select pg_stat_file('PG_VERSION')"),
		row("pg_ls_logdir", "42501", "select pg_ls_logdir()"),
		row("pg_ls_waldir", "42501", "select pg_ls_waldir()"),
		row("pg_ls_tmpdir", "42501", "select pg_ls_tmpdir()"),
		row("lo_import", "42501", "select lo_import('/etc/passwd')"),
		row("lo_import with an oid", "42501", "select lo_import('/etc/passwd', 4711)"),
		row("lo_export", "42501", "select lo_export(lo_from_bytea(0, 'x'), '/tmp/holdfast-attack')"),
		row("tablespace", "42501", "create tablespace attack location '/tmp'"),
		row("COPY to file in a function of its own", "42501",
			"create function pg_temp.f() returns void security definer language plpgsql as $$ begin copy (select 1) to '/tmp/holdfast-attack'; end $$",
			"select pg_temp.f()"),
		row("dictionary outside of its directory", "22023", "create text search dictionary d (template = simple, stopwords = '../../../../../../etc/passwd')"),
		row("dictionary by absolute path", "22023", "create text search dictionary d (template = simple, stopwords = '/etc/passwd')"),
		row("time zone file", "22023", "set timezone = '../../../../etc/passwd'"),
		row("time zone abbreviations file", "22023", "set timezone_abbreviations = '../../etc/passwd'"),
		row("file_fdw", "42501", "create extension file_fdw"),
		row("adminpack", "42501 0A000 58P01", "create extension adminpack"), // removed in 17
		row("xml entity", "2200N 0A000 2200M 22P02", `select xmlparse(document '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a><')`),
	}
}

func ownersCode() []attack {
	return []attack{
		row("C function", "42501", "create function f() returns int language c as 'libc.so.6', 'system'"),
		row("internal function", "42501", "create function f() returns int language internal as 'pg_read_file_off_len'"),
		row("LOAD", "42501", "load 'auto_explain'"),
		row("LOAD by path", "42501", "load '/tmp/attack.so'"),
		row("plpython3u", "42501 0A000 58P01 22023", "create extension plpython3u"),
		row("plperlu", "42501 0A000 58P01 22023", "create extension plperlu"),
		row("pltclu", "42501 0A000 58P01 22023", "create extension pltclu"),
		row("language of its own", "42501", "create language attack handler plpgsql_call_handler"),
		row("event trigger", "42501", "create function public.et() returns event_trigger language plpgsql as 'begin end'",
			"create event trigger e on ddl_command_start execute function public.et()"),
		row("base type", "42501", "create type bt"),
		row("operator class", "42501", "create operator class x default for type int4 using btree as operator 1 <"),
		row("access method", "42501", "create access method attack type index handler bthandler"),
		row("foreign data wrapper", "42501", "create foreign data wrapper attack"),
		row("transform", "42501 42704 42P13", "create transform for int language plpgsql (from sql with function prsd_end(internal))"),
		row("cast between types of others", "42501", "create cast (int as text) without function"),
		row("text search parser", "42501", "create text search parser p (start = prsd_start, gettoken = prsd_nexttoken, end = prsd_end, lextypes = prsd_lextype)"),
		row("text search template", "42501", "create text search template x (lexize = dsimple_lexize)"),
		row("planner support function", "42501", "create function public.sf() returns int language sql support generate_series_int4_support as 'select 1'"),
		row("leakproof function", "42501", "create function public.lf(text) returns bool leakproof language sql as 'select true'"),
	}
}

func ownersRoles() []attack {
	return []attack{
		row("superuser", "42501", "alter role app superuser"),
		row("createrole", "42501", "alter role app createrole"),
		row("createdb", "42501", "alter role app createdb"),
		row("replication", "42501", "alter role app replication"),
		row("bypassrls", "42501", "alter role app bypassrls"),
		row("rename itself", "0A000 42501", "alter role app rename to other"),
		row("valid until", "42501", "alter role app valid until 'infinity'"),
		row("create role", "42501", "create role attack"),
		row("create superuser", "42501", "create role attack superuser login"),
		row("set role", "42501", "set role holdfast"),
		row("set role to the reader", "42501", "set role app_readonly"),
		row("set session authorization", "42501", "set session authorization holdfast"),
		row("set_config role", "42501", "select set_config('role', 'holdfast', false)"),
		row("set_config session_authorization", "42501", "select set_config('session_authorization', 'holdfast', false)"),
		row("role in a function's settings", "42501", "create function public.rs() returns text language sql set role = 'holdfast' as 'select current_user'"),
		row("session_authorization in a function's settings", "42501",
			"create function public.sa() returns text language sql set session_authorization = 'holdfast' as 'select current_user'"),
		row("password of the superuser", "42501", "alter role holdfast password 'x'"),
		row("password of the reader", "42501", "alter role app_readonly password 'x'"),
		row("password by ALTER USER", "42501", "alter user holdfast with encrypted password 'x'"),
		row("read-write reader", "42501", "alter role app_readonly set default_transaction_read_only = off"),
		row("read-write reader in its database", "42501", "alter role app_readonly in database app set default_transaction_read_only = off"),
		row("settings of the superuser", "42501", "alter role holdfast in database app set search_path = public"),
		row("settings of everybody", "42501", "alter role all set search_path = public"),
		row("drop the reader", "42501", "drop role app_readonly"),
		row("rename the reader", "42501", "alter role app_readonly rename to other"),
		row("drop what the reader owns", "42501", "drop owned by app_readonly"),
		row("take what the superuser owns", "42501 2BP01", "reassign owned by holdfast to app"),
		row("mark itself as the reader", "42501", "comment on role app is 'holdfast: read-only role'"),
		row("unmark the reader", "42501", "comment on role app_readonly is null"),
		row("update pg_authid", "42501", "update pg_authid set rolsuper = true"),
		row("create group", "42501", "create group attack"),
	}
}

func ownersGrants() []attack {
	rows := []attack{
		row("superuser's role", "42501", "grant holdfast to app"),
		row("reader's role to itself", "42501", "grant app_readonly to app"),
		// PostgreSQL 14 and older let a role grant itself.
		row("its role to the reader", "42501", "grant app to app_readonly"),
		row("pg_database_owner", "42501 0LP01 0A000", "grant pg_database_owner to app_readonly"),
		row("into the owner of databases", "42501 0LP01", "grant app_readonly to pg_database_owner"),
		row("a parameter", "42501", "grant set on parameter log_statement to app"),
		row("ALTER SYSTEM of a parameter", "42501", "grant alter system on parameter work_mem to app"),
		row("default privileges of the superuser", "42501", "alter default privileges for role holdfast grant all on tables to app"),
		// Without a grant option this grants nothing; PostgreSQL only warns.
		row("large objects to all", "", "grant execute on function lo_create(oid) to public", "grant execute on function lo_unlink(oid) to app_readonly"),
		row("on pg_authid", "42501", "grant select on pg_authid to app"),
		row("on pg_read_file", "42501", "grant execute on function pg_read_file(text) to app"),
		row("on language c", "42501 42809", "grant usage on language c to app"),
	}
	for _, role := range []string{
		"pg_execute_server_program", "pg_read_server_files", "pg_write_server_files", "pg_monitor",
		"pg_read_all_settings", "pg_read_all_data", "pg_write_all_data", "pg_signal_backend", "pg_checkpoint",
	} {
		rows = append(rows, row(role, "42501", "grant "+role+" to app"))
	}
	return rows
}

// The superuser's objects run with its rights when they are maintained or called:
// Cloud SQL allowed giving tables to its superuser.
func ownersGifts() []attack {
	return []attack{
		row("table", "42501", "create table public.gift (n int)", "alter table public.gift owner to holdfast"),
		row("function", "42501", "create function public.gf() returns int security definer language sql as 'select 1'", "alter function public.gf() owner to holdfast"),
		row("view", "42501", "create view public.gv as select 1", "alter view public.gv owner to holdfast"),
		row("materialized view", "42501", "create materialized view public.gm as select 1", "alter materialized view public.gm owner to holdfast"),
		row("schema", "42501", "create schema gs", "alter schema gs owner to holdfast"),
		row("schema for the superuser", "42501", "create schema attack authorization holdfast"),
		// CVE-2023-2454: elements of a schema created with another role's rights.
		row("schema with elements", "42501", "create schema attack authorization holdfast create table t (n int) create view v as select 1"),
		row("public schema", "42501", "alter schema public owner to holdfast"),
		row("type", "42501", "create type public.gt as enum ('a')", "alter type public.gt owner to holdfast"),
		row("database", "42501", "alter database app owner to holdfast"),
		row("database to the reader", "42501", "alter database app owner to app_readonly"),
		row("everything", "42501", "reassign owned by app to holdfast"),
		row("large object", "42501", "select lo_create(47110)", "alter large object 47110 owner to holdfast"),
		row("policy for the superuser", "", "create table public.gp (n int)", "create policy p on public.gp to holdfast using (true)"),
		row("default privileges to the superuser", "", "alter default privileges grant all on tables to holdfast"),
	}
}

func ownersSettings() []attack {
	rows := []attack{
		row("ALTER SYSTEM", "42501", "alter system set work_mem = '1MB'"),
		row("ALTER SYSTEM RESET ALL", "42501", "alter system reset all"),
		row("pg_reload_conf", "42501", "select pg_reload_conf()"),
		row("update pg_settings", "42501", "update pg_settings set setting = 'all' where name = 'log_statement'"),
		row("library of everybody's by path", "42501", "alter role app set local_preload_libraries = '/tmp/attack.so'",
			"alter role app reset local_preload_libraries", "set session_preload_libraries = 'x'"),
		row("server's files", "55P02", "alter database app set hba_file = '/tmp/x'"),
		row("archive command", "55P02", "alter database app set archive_command = 'touch attack'"),
		row("certificate", "55P02", "alter database app set ssl = off"),
	}
	// Settings that run code, hide traces or override checks; each is tried for the
	// session, the role and the database.
	for _, name := range []string{
		"session_preload_libraries = 'x'", "dynamic_library_path = '/tmp'", "session_replication_role = replica",
		"log_statement = 'all'", "log_min_messages = 'debug5'", "lo_compat_privileges = on", "allow_system_table_mods = on",
		"zero_damaged_pages = on", "ignore_checksum_failure = on", "temp_file_limit = 1", "backtrace_functions = 'x'",
		"track_activities = off", "pg_stat_statements.track = none",
	} {
		rows = append(rows,
			row("SET "+name, "42501", "set "+name),
			row("ALTER ROLE SET "+name, "42501", "alter role app set "+name),
			row("ALTER DATABASE SET "+name, "42501", "alter database app set "+name),
		)
	}
	return rows
}

func ownersServer() []attack {
	rows := []attack{
		row("checkpoint", "42501", "checkpoint"),
		row("database", "42501", "create database attack"),
		row("database from this one", "42501", "create database attack template app"),
		row("rename the database", "42501", "alter database app rename to other"),
		row("close the database", "22023 55000 42501", "alter database app allow_connections false"),
		row("drop the database it is in", "55006", "drop database app"),
		row("drop another database", "42501", "drop database postgres"),
		row("move the database", "42501 55006 42704", "alter database app set tablespace pg_global"),
		row("physical slot", "42501 55000", "select pg_create_physical_replication_slot('attack', true)"),
		row("logical slot", "42501 55000", "select pg_create_logical_replication_slot('attack', 'test_decoding')"),
		row("drop a slot", "42501 55000", "select pg_drop_replication_slot('holdfast')"),
		row("replication origin", "42501", "select pg_replication_origin_create('attack')"),
		row("backup mode", "42501", "select pg_backup_start('attack')"),
		row("log messages of another", "42501", "select pg_log_backend_memory_contexts(1)"),
		row("statistics of all", "42501", "select pg_stat_reset_shared('bgwriter')"),
		row("prepared transaction", "55000", "begin", "prepare transaction 'attack'"),
	}
	for _, call := range []string{
		"pg_rotate_logfile()", "pg_promote()", "pg_switch_wal()", "pg_create_restore_point('x')", "pg_wal_replay_pause()", "pg_stat_reset()",
	} {
		rows = append(rows, row(call, "42501", "select "+call))
	}
	for _, act := range []string{"pg_terminate_backend", "pg_cancel_backend"} {
		// The harness keeps a superuser session open; CVE-2023-5870 was about workers
		// that have no user.
		rows = append(rows,
			row(act+" of the superuser", "42501", "select "+act+"(pid) from pg_stat_activity where usename = 'holdfast'"),
			row(act+" of the workers", "42501", "select "+act+"(pid) from pg_stat_activity where usename is null or backend_type <> 'client backend'"))
	}
	return rows
}

// What it must not see.
func ownersEyes() []attack {
	return []attack{
		row("pg_authid", "42501", "select rolpassword from pg_authid"),
		row("pg_shadow", "42501", "select passwd from pg_shadow"),
		row("pg_hba_file_rules", "42501", "select * from pg_hba_file_rules"),
		row("pg_ident_file_mappings", "42501", "select * from pg_ident_file_mappings"),
		row("pg_file_settings", "42501", "select * from pg_file_settings"),
		row("pg_config", "42501", "select * from pg_config"),
		row("pg_shmem_allocations", "42501", "select * from pg_shmem_allocations"),
		row("pg_subscription", "42501", "select subconninfo from pg_subscription"),
		row("pg_user_mapping", "42501", "select * from pg_user_mapping"),
		row("pg_statistic", "42501", "select * from pg_statistic"),
		row("data directory", "42501", "show data_directory"),
		row("socket directory", "42501", "show unix_socket_directories"),
		row("log file", "42501", "select pg_current_logfile()"),
		row("statements of the superuser", "22012",
			"select 1 / 1 from pg_stat_activity where usename = 'holdfast' and query = '<insufficient privilege>'",
			"select 1 / (count(*) filter (where query <> '<insufficient privilege>' or client_addr is not null)) from pg_stat_activity where usename is distinct from session_user"),
	}
}

// Ways to reach other servers, or its own server by another route.
func ownersWaysOut() []attack {
	return []attack{
		row("dblink", "42501", "create extension dblink"),
		row("postgres_fdw", "42501", "create extension postgres_fdw"),
		row("foreign server", "42501 42704", "create server attack foreign data wrapper postgres_fdw options (host '/tmp')"),
		row("subscription", "42501", "create subscription attack connection 'host=127.0.0.1' publication p"),
		row("subscription without connecting", "42501", "create subscription attack connection 'host=/tmp user=holdfast' publication p with (connect = false)"),
		row("publication of all tables", "42501", "create publication attack for all tables"),
		row("publication of a schema", "42501", "create publication attack for tables in schema public"),
	}
}

func ownersExtensions() []attack {
	rows := []attack{
		row("by path", "22023", "create extension \"../../../tmp/attack\""),
		// PostgreSQL allows it; the objects created there belong to the extension and the
		// superuser, and the owner can write none of them.
		row("into pg_catalog", "42501", "create extension citext schema pg_catalog", "comment on function pg_catalog.citext_eq(citext, citext) is 'x'"),
		row("take from pg_catalog", "42501", "alter extension citext drop function pg_catalog.citext_eq(citext, citext)"),
		row("version by path", "22023", "create extension hstore version '../../../../tmp/attack'"),
		row("give a function to an extension", "42501", "create extension hstore", "create function public.ef() returns int language sql as 'select 1'",
			"alter extension plpgsql add function public.ef()"),
		row("change what an extension owns", "42501", "create extension if not exists hstore", "create or replace function public.hstore_to_json(hstore) returns json language sql as 'select null::json'"),
		row("drop plpgsql from pg_catalog", "42501 2BP01", "drop extension plpgsql"),
	}
	for _, name := range []string{
		"pg_stat_statements", "pageinspect", "pg_buffercache", "pg_freespacemap", "pg_visibility", "pg_walinspect", "pgrowlocks",
		"pgstattuple", "amcheck", "pg_prewarm", "pg_surgery", "sslinfo", "old_snapshot", "intagg", "insert_username", "autoinc", "refint", "moddatetime", "xml2",
	} {
		rows = append(rows, row(name, "42501 0A000 58P01", "create extension "+name))
	}
	return rows
}

func ownersCatalog() []attack {
	return []attack{
		row("function in pg_catalog", "42501", "create function pg_catalog.attack() returns int language sql as 'select 1'"),
		row("replace a function of pg_catalog", "42501", "create or replace function pg_catalog.pg_get_userbyid(oid) returns name language sql as 'select ''x''::name'"),
		row("own a function of pg_catalog", "42501", "alter function pg_catalog.pg_get_userbyid(oid) owner to app"),
		row("move a function to pg_catalog", "42501", "create function public.mf() returns int language sql as 'select 1'", "alter function public.mf() set schema pg_catalog"),
		row("move a table to pg_catalog", "42501", "create table public.mt (n int)", "alter table public.mt set schema pg_catalog"),
		row("table in pg_catalog", "42501", "create table pg_catalog.attack (n int)"),
		row("function in information_schema", "42501", "create function information_schema.attack() returns int language sql as 'select 1'"),
		row("a reserved schema", "42939", "create schema pg_attack"),
		row("a temporary schema of another", "42939", "create schema pg_temp_1"),
		row("rename to a temporary schema", "42939", "create schema rs", "alter schema rs rename to pg_temp_1"),
		row("update pg_class", "42501", "update pg_class set relowner = 10"),
		row("insert into pg_proc", "42501", "insert into pg_proc select * from pg_proc limit 1"),
		row("delete from pg_db_role_setting", "42501", "delete from pg_db_role_setting"),
		row("trigger on a catalog", "42501", "create function public.tf() returns trigger language plpgsql as 'begin return new; end'",
			"create trigger x before insert on pg_class execute function public.tf()"),
		row("rule on a catalog", "42501", "create rule x as on select to pg_class do instead select * from pg_class"),
		row("policy on a catalog", "42501", "create policy p on pg_class using (true)"),
		row("row-level security of a catalog", "42501", "alter table pg_policy enable row level security"),
		row("exclusive lock on a catalog", "42501", "begin", "lock table pg_class in access exclusive mode"),
		row("exclusive lock on the roles", "42501", "begin", "lock table pg_authid in row exclusive mode"),
		row("reindex the roles", "42501", "reindex table pg_authid"),
		row("security label", "42501 22023", "security label on role app is 'x'"),
	}
}
