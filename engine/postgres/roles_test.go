package postgres_test

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// refused runs statements, each of which must be refused with one of the SQLSTATEs.
// Each has its own transaction.
func refused(t *testing.T, conn *pgx.Conn, states string, statements []string) {
	t.Helper()
	for _, statement := range statements {
		_, err := conn.Exec(t.Context(), statement)
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || !strings.Contains(states, pg.Code) {
			t.Errorf("%s: %v, want SQLSTATE %s", statement, err, states)
		}
	}
}

func allowed(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

func TestOwnerCannotReachTheHost(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	owner := d.Owner(t)
	allowed(t, owner, "create table t (n int)", "insert into t values (1)", "create schema s", "create temp table tt (n int)",
		"create extension pgcrypto", "create function f() returns int language sql as 'select 1'", "select lo_create(0)",
		"select pg_logical_emit_message(false, 'a', 'b')")
	refused(t, owner, "42501", []string{
		"copy t to program 'id'",
		"copy t from program 'id'",
		"copy t from '/etc/passwd'",
		"copy t to '/tmp/holdfast-test'",
		"select pg_read_file('/etc/passwd')",
		"select pg_read_binary_file('PG_VERSION')",
		"select pg_ls_dir('.')",
		"select pg_stat_file('PG_VERSION')",
		"select * from pg_ls_logdir()",
		"select lo_import('/etc/passwd')",
		"select lo_export(1, '/tmp/holdfast-test')",
		"create role r",
		"create database d",
		"alter role app superuser",
		"alter role app createrole",
		"alter role holdfast password 'x'",
		"alter role app_readonly password 'x'",
		"grant pg_execute_server_program to app",
		"grant pg_read_server_files to app",
		"set role holdfast",
		"set session authorization holdfast",
		"alter system set work_mem = '1MB'",
		"select pg_reload_conf()",
		"create function g() returns int language c as 'nothing', 'nothing'",
		"create function g() returns int language internal as 'nothing'",
		"create extension file_fdw",
		"create extension dblink",
		"create extension pg_stat_statements",
		"load 'auto_explain'",
		"set log_statement = 'all'",
		"set session_replication_role = replica",
		"create tablespace x location '/tmp'",
		"create subscription x connection 'host=127.0.0.1' publication p",
		"select * from pg_authid",
		"select * from pg_hba_file_rules",
		"select pg_create_physical_replication_slot('x')",
		"create event trigger e on ddl_command_start execute function f()",
	})
	// It cannot see the statements of others' sessions.
	var seen int
	err := owner.QueryRow(t.Context(), "select count(*) from pg_stat_activity where usename = 'holdfast' and query <> '<insufficient privilege>'").Scan(&seen)
	if err != nil || seen > 0 {
		t.Errorf("sees %d statements of the superuser, %v", seen, err)
	}
}

func TestReadOnlyCannotWrite(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	owner := d.Owner(t)
	allowed(t, owner, "create table t (n serial)", "insert into t values (1)", "create schema s", "create table s.u (n int)", "select lo_create(4711)")
	ro := d.ReadOnly(t)
	var n int
	if err := ro.QueryRow(t.Context(), "select count(*) from t, (select count(*) from s.u) u").Scan(&n); err != nil || n != 1 {
		t.Errorf("reads %d, %v", n, err)
	}
	allowed(t, owner, "create table later (n int)")
	allowed(t, ro, "select * from later")
	refused(t, ro, "25006", []string{"insert into t values (2)", "create table x (n int)", "create temp table x (n int)", "truncate t"})

	// A session may declare itself read-write; it does not help.
	allowed(t, ro, "set default_transaction_read_only = off")
	refused(t, ro, "42501", []string{
		"insert into t values (2)", "update t set n = 2", "delete from t", "truncate t", "drop table t", "alter table t add m int",
		"create table x (n int)", "create temp table x (n int)", "create schema x", "create table public.x (n int)",
		"create function pg_temp.f() returns int language sql as 'select 1'",
		"select nextval('t_n_seq')", "select setval('t_n_seq', 7)", "do $$ begin lock table t in exclusive mode; end $$",
		"select lo_create(0)", "select lo_creat(-1)", "select lo_from_bytea(0, 'x')", "select lo_put(4711, 0, 'x')", "select lo_unlink(4711)",
		"select lowrite(0, 'x')", "select lo_truncate(0, 0)", "select lo_import('/etc/passwd')",
		"select pg_logical_emit_message(false, 'a', 'b')",
		"copy t to program 'id'", "create role r", "alter role app password 'x'", "grant app to app_readonly",
		"set role app", "create extension hstore", "alter database app set work_mem = '1MB'", "refresh materialized view pg_class",
	})
	var count int
	if err := owner.QueryRow(t.Context(), "select count(*) from t").Scan(&count); err != nil || count != 1 {
		t.Errorf("the table has %d rows, %v", count, err)
	}
}

func TestReadOnlyIsSetRightAgain(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	allowed(t, d.ReadOnly(t), "set default_transaction_read_only = off", "alter role app_readonly set default_transaction_read_only = off")
	if err := postgres.SetPasswords(t.Context(), d.Superuser(t, "postgres"), d.Tenant); err != nil {
		t.Fatal(err)
	}
	refused(t, d.ReadOnly(t), "25006", []string{"create table x (n int)"})
}

// The owner's settings of the database must not mislead the superuser.
func TestOwnersSettingsDoNotReachTheSuperuser(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	allowed(t, d.Owner(t),
		"create function public.count_trap() returns int language sql as 'select 1'",
		"alter database app set search_path = public, pg_catalog",
		"alter database app set default_transaction_read_only = on",
		"alter database app set statement_timeout = '1ms'",
		"alter database app set role = 'app'",
	)
	conn := d.Superuser(t, "app")
	var path, who, readOnly, timeout string
	err := conn.QueryRow(t.Context(), "select current_setting('search_path'), current_user::text, current_setting('transaction_read_only'), current_setting('statement_timeout')").
		Scan(&path, &who, &readOnly, &timeout)
	if err != nil || path != "pg_catalog" || who != "holdfast" || readOnly != "off" || timeout != "0" {
		t.Errorf("search_path %q, user %q, read-only %q, timeout %q, %v", path, who, readOnly, timeout, err)
	}
}

func oddPasswords() []string {
	return []string{
		`it's "quoted" \ $1 %s`, `''; drop role app; --`, "größe-Ωμέγα", "漢字パスワード", "😀😀😀😀😀😀😀😀", strings.Repeat("x", 128), `\\\\\\\\`, "md5aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "SCRAM-SHA-256$4096:x",
	}
}

func TestOddPasswords(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	super := d.Superuser(t, "postgres")
	psql, err := exec.LookPath("psql")
	if err != nil {
		psql = ""
	}
	for _, password := range oddPasswords() {
		d.Tenant.OwnerPassword = model.NewSecret(password)
		if err := postgres.CheckPassword("password", d.Tenant.OwnerPassword); err != nil {
			t.Errorf("%q: %v", password, err)
		}
		if err := postgres.SetPasswords(t.Context(), super, d.Tenant); err != nil {
			t.Fatalf("%q: %v", password, err)
		}
		u := url.URL{Scheme: "postgres", Host: fmt.Sprintf("127.0.0.1:%d", d.Spec.Config.Port), Path: "app", User: url.UserPassword("app", password)}
		if err := tryConnect(t, u.String()); err != nil {
			t.Errorf("%q with pgx: %v", password, err)
		}
		if psql == "" {
			continue
		}
		cmd := exec.CommandContext(t.Context(), psql, "-XAt", "-h", "127.0.0.1", "-p", fmt.Sprint(d.Spec.Config.Port), "-U", "app", "-c", "select 1", "app")
		cmd.Env = append(cmd.Environ(), "PGPASSWORD="+password)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q with psql: %v, %s", password, err, out)
		}
	}
}

// No password appears in the log or in statistics.
func TestPasswordsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.Config.Settings = map[string]string{"log_statement": "all", "log_min_duration_statement": "0", "log_connections": "on"}
	})
	super := d.Superuser(t, "postgres")
	if err := postgres.SetPasswords(t.Context(), super, d.Tenant); err != nil {
		t.Fatal(err)
	}
	d.Owner(t)
	var traces int
	err := super.QueryRow(t.Context(), `select count(*) from public.pg_stat_statements where strpos(query, $1) > 0 or strpos(query, 'SCRAM-SHA-256$') > 0 and strpos(query, 'pg_stat_statements') = 0`, d.Tenant.OwnerPassword.Reveal()).Scan(&traces)
	if err != nil || traces > 0 {
		t.Errorf("%d statements with the password, %v", traces, err)
	}
	log := serverLog(t, d.Spec.Dir)
	if strings.Contains(log, d.Tenant.OwnerPassword.Reveal()) || strings.Contains(log, "SCRAM-SHA-256$") {
		t.Error("the log holds the password or its verifier")
	}
	if !strings.Contains(log, "connection authenticated") {
		t.Error("the log was not written, the test shows nothing")
	}
}
