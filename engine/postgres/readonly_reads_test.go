package postgres_test

import (
	"os/exec"
	"strings"
	"testing"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
)

// made is what an owner creates, in ways that differ in how privileges arise. $ is
// the schema.
const made = `create schema $
create table $.t (n serial primary key)
create view $.v as select * from $.t
create materialized view $.mv as select * from $.t
create table $."select, ""quoted""" as select 1 as n
create table $.parts (n int) partition by range (n)
create table $.part1 partition of $.parts for values from (0) to (10)
create unlogged table $.u ()
create sequence $.seq
create table moved (n int)
alter table moved set schema $
create table $.old (n int)
alter table $.old rename to new
begin
create table $.t2 (like $.t)
drop table $.new
alter table $.t2 rename to new
commit`

const read = `table $.t
table $.v
table $.mv
table $."select, ""quoted"""
table $.parts
table $.part1
table $.u
table $.moved
table $.new
select last_value from $.seq
select last_value from $.t_n_seq`

func makes(t *testing.T, owner *pgx.Conn, schema string) {
	t.Helper()
	allowed(t, owner, strings.Split(strings.ReplaceAll(made, "$", schema), "\n")...)
}

func reads(t *testing.T, d *postgrestest.Database, schema string) {
	t.Helper()
	allowed(t, d.ReadOnly(t), strings.Split(strings.ReplaceAll(read, "$", schema), "\n")...)
}

// The read-only role reads what the owner creates, wherever and however, and what a
// database of an older version contains.
func TestReadOnlyReadsWhatTheOwnerMakes(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	owner, super := d.Owner(t), d.Superuser(t, "app")
	t.Run("new", func(t *testing.T) {
		makes(t, owner, "first")
		reads(t, d, "first")
	})
	t.Run("public closed to others", func(t *testing.T) {
		allowed(t, owner, "create table public.kept (n int)", "revoke all on schema public from public", "revoke all on all tables in schema public from public")
		allowed(t, d.ReadOnly(t), "table public.kept")
	})
	t.Run("public made anew", func(t *testing.T) {
		allowed(t, owner, "drop schema public cascade", "create schema public", "create table public.kept (n int)")
		allowed(t, d.ReadOnly(t), "table public.kept")
	})
	t.Run("after the reader's drop owned", func(t *testing.T) {
		allowed(t, d.ReadOnly(t), "set default_transaction_read_only = off", "drop owned by app_readonly")
		reads(t, d, "first")
		makes(t, owner, "second")
		reads(t, d, "second")
	})
	t.Run("what the owner has taken away", func(t *testing.T) {
		allowed(t, owner, "revoke select on first.t from app_readonly", "alter default privileges revoke select on tables from app_readonly", "create table first.closed (n int)")
		provisioned(t, d)
		refused(t, d.ReadOnly(t), noPrivilege, []string{"table first.t", "table first.closed"})
		allowed(t, owner, "grant select on first.t, first.closed to app_readonly", "alter default privileges grant select on tables to app_readonly")
	})
	t.Run("of an older version", func(t *testing.T) {
		olderReader(t, super)
		makes(t, owner, `"an ""odd"" $$ schema's"`)
		allowed(t, d.ReadOnly(t), "select rolpassword from pg_authid limit 1")
		provisioned(t, d)
		reads(t, d, `"an ""odd"" $$ schema's"`)
		reads(t, d, "second")
		makes(t, owner, "third")
		reads(t, d, "third")
		refused(t, d.ReadOnly(t), noPrivilege, []string{"select rolpassword from pg_authid limit 1"})
	})
	t.Run("after the owner's drop owned", func(t *testing.T) {
		allowed(t, owner, "drop owned by app", "create schema public")
		makes(t, owner, "fourth")
		reads(t, d, "fourth")
	})
	t.Run("pg_dump", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), d.Spec.Bin.Tool("pg_dump"), "--dbname", ofPrograms(d.URL("app_readonly", d.Tenant.ReadOnlyPassword))).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "CREATE TABLE fourth.t") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// olderReader gives the read-only role the privileges it had in older versions.
func olderReader(t *testing.T, super *pgx.Conn) {
	t.Helper()
	allowed(t, super, "grant pg_read_all_data to app_readonly",
		"alter default privileges for role app revoke select on tables from app_readonly",
		"alter default privileges for role app revoke select on sequences from app_readonly",
		"alter default privileges for role app revoke usage on schemas from app_readonly",
		`do $$ declare s text; begin for s in select nspname from pg_namespace where nspowner = 'app'::regrole or nspname = 'public' loop
			execute format('revoke all on schema %1$I from app_readonly; revoke all on all tables in schema %1$I from app_readonly; revoke all on all sequences in schema %1$I from app_readonly', s);
		end loop; end $$`)
}

// A database of an older version may have any names.
func TestReadOnlyOfAnOlderVersionUnderOddNames(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	owner, super := d.Owner(t), d.Superuser(t, "app")
	olderReader(t, super)
	allowed(t, owner, `create schema "Odd '$$ "`, `create table "Odd '$$ "."%I "" $1" ()`, `create table "Odd '$$ "."12" ()`)
	for _, conn := range []*pgx.Conn{owner, super} {
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	odd := d.Tenant
	odd.Database, odd.Owner, odd.ReadOnly = `odd "name'; --`, `o"wner'`, `r'o %s "`
	if err := postgres.Provision(t.Context(), d.Superuser(t, "postgres"), odd); err != nil {
		t.Fatal(err)
	}
	var unread, member int
	err := d.Superuser(t, odd.Database).QueryRow(t.Context(), `select
		(select count(*) from pg_class c where relowner = (select datdba from pg_database where datname = $1) and relkind = 'r'
			and not (has_table_privilege($2, c.oid, 'select') and has_schema_privilege($2, relnamespace, 'usage'))),
		(select count(*) from pg_auth_members where member::regrole::text <> 'holdfast_dump' and roleid = 'pg_read_all_data'::regrole)`,
		odd.Database, odd.ReadOnly).Scan(&unread, &member)
	if err != nil || unread+member != 0 {
		t.Errorf("%d tables are not readable, %d memberships, %v", unread, member, err)
	}
}
