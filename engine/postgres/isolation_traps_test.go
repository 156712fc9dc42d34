package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
)

// The appliance's own statements in a tenant's database must execute nothing that
// the tenant made: no function, operator, cast, type, view, rule, policy or
// default, wherever a search path leads. A trap is such an object. It runs
// sprung(), which advances a sequence, because sequences survive rollbacks.
//
// trapBase creates it, and the everyday objects that carry expressions.
var trapBase = []string{
	"create sequence public.sprung_by_appliance",
	"create sequence public.ran",
	`create function public.sprung() returns bool language plpgsql immutable as $$ begin
		perform pg_catalog.nextval('public.ran');
		if session_user operator(pg_catalog.=) 'holdfast' or current_user operator(pg_catalog.=) 'holdfast' then
			perform pg_catalog.nextval('public.sprung_by_appliance');
		end if;
		return true; end $$`,
	"create function public.sprung(int) returns int language plpgsql immutable as 'begin perform public.sprung(); return $1; end'",
	"create function public.sprung_trigger() returns trigger language plpgsql as 'begin perform public.sprung(); return new; end'",

	"create type public.kind as enum ('a', 'b')",
	"create function public.to_kind(text) returns public.kind language plpgsql as 'begin perform public.sprung(); return ''a''; end'",
	"create cast (text as public.kind) with function public.to_kind(text) as implicit",
	"create domain public.checked as int check (public.sprung())",
	"create type public.pair as (x public.checked, y public.kind)",
	"create type public.span as range (subtype = int4, subtype_diff = int4range_subdiff)",
	`create table public.orders (n int default public.sprung(1) check (public.sprung()), k public.kind default 'a', c public.checked default 1,
		g int generated always as (public.sprung(1)) stored)`,
	"create index on public.orders (public.sprung(n)) where public.sprung()",
	"create trigger t before insert or update or delete on public.orders for each row execute function public.sprung_trigger()",
	"create rule r as on update to public.orders do also select public.sprung()",
	"create policy p1 on public.orders using (public.sprung()) with check (public.sprung(n) > 0)",
	"create policy p2 on public.orders as restrictive to app_readonly using (k = 'a'::public.kind and c = 1::public.checked)",
	"create policy p3 on public.orders using (row(1, 'a')::public.pair is not null and '[1,2)'::public.span @> n and n in (select m.n from public.orders m))",
	"create table public.parts (n int) partition by range (public.sprung(n))",
	"create table public.part1 partition of public.parts for values from (0) to (10)",
	"create policy p on public.parts using (public.sprung())",
	"create view public.v with (security_barrier) as select * from public.orders where public.sprung()",
	"create materialized view public.mv as select 1 as n where public.sprung()",
	`create schema "s""; select public.sprung(); --"`,
	`create table "s""; select public.sprung(); --"."t'; select public.sprung(); --" (n int)`,
	`create policy "p""; select public.sprung(); --" on "s""; select public.sprung(); --"."t'; select public.sprung(); --" using (true)`,
	"comment on database app is 'holdfast: read-only role'",
	"create statistics public.st on public.sprung(n), n from public.orders",
}

// shadows returns traps in the schema that have the names of what the appliance
// uses.
func shadows(schema string) []string {
	q := func(s string) string { return strings.ReplaceAll(s, "$S", schema) }
	var made []string
	for _, view := range []string{
		"pg_class", "pg_namespace", "pg_policy", "pg_policies", "pg_roles", "pg_authid", "pg_database", "pg_stat_activity", "pg_stat_ssl",
		"pg_hba_file_rules", "pg_proc", "pg_description", "pg_shdescription", "pg_extension", "pg_settings",
	} {
		made = append(made, q("create view $S."+view+" as select c.* from pg_catalog."+view+" c where public.sprung()"))
	}
	for _, function := range []string{
		"pg_get_userbyid(oid) returns name", "pg_get_expr(pg_node_tree, oid) returns text", "pg_database_size(name) returns bigint",
		"pg_terminate_backend(int) returns bool", "pg_backend_pid() returns int", "pg_conf_load_time() returns timestamptz",
		"shobj_description(oid, name) returns text", "host(inet) returns text", "current_setting(text) returns text",
		"current_database() returns name", "version() returns text", "set_config(text, text, bool) returns text",
		"array_to_string(text[], text) returns text", "format(text) returns text", "quote_ident(text) returns text", "count(text) returns bigint",
	} {
		made = append(made, q("create function $S."+function+" language plpgsql as 'begin perform public.sprung(); return null; end'"))
	}
	for i, operands := range []string{
		"name, name", "name, text", "text, text", "oid, oid", `"char", "char"`, "int, int", "bool, bool", "name[], name[]", "text, unknown", "oid, int",
	} {
		if strings.Contains(operands, "unknown") {
			continue // no function accepts that
		}
		left, right, _ := strings.Cut(operands, ", ")
		name := q("$S.trap") + string(rune('a'+i))
		made = append(made, "create function "+name+"("+operands+") returns bool language plpgsql as 'begin return public.sprung(); end'")
		for _, op := range []string{"=", "<>", "~~", "!~~", "<", "@>"} {
			made = append(made, q("create operator $S."+op+" (function = "+name+", leftarg = "+left+", rightarg = "+right+")"))
		}
	}
	for _, domain := range []string{"name", "text", "oid", "regclass", "int4", "bool", `"char"`} {
		made = append(made, q("create domain $S."+domain+" as pg_catalog."+domain+" check (public.sprung())"))
	}
	return made
}

// acts does everything the appliance does with a tenant's database as its own role.
// super is the superuser's session in the database postgres; inside opens one in
// the tenant's.
func acts(t *testing.T, d *postgrestest.Database, inside func() *pgx.Conn) {
	t.Helper()
	ctx := within(t, 20*time.Second)
	super := d.Superuser(t, "postgres")
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	must("provision", postgres.Provision(ctx, super, d.Tenant))
	must("set passwords", postgres.SetPasswords(ctx, super, d.Tenant))
	more := d.Tenant
	for _, access := range model.RoleAccesses() {
		more.Roles = append(more.Roles, postgres.ClientRole{Name: "made_" + string(access), Access: access})
	}
	must("prepare roles", postgres.PrepareAccess(ctx, super, more))
	must("make roles", postgres.SetClientRoles(ctx, super, more))
	more.Roles[2].Access = model.AccessWrite
	must("take the owner's access from one", postgres.SetClientRoles(ctx, super, more))
	must("take what it has", postgres.FollowClientRoles(ctx, super, more, "made_owner"))
	must("close roles", postgres.SetClientRoles(ctx, super, d.Tenant))
	for _, access := range model.RoleAccesses() {
		must("drop a role", postgres.FollowClientRoles(ctx, super, d.Tenant, "made_"+string(access)))
	}
	_, err := postgres.Stats(ctx, super, "app")
	must("stats", err)
	must("rules", d.Supervisor.Update(ctx, d.Spec.ID, d.Spec.HBA))
	must("reload", d.Supervisor.Reload(ctx, d.Spec.ID))

	conn := inside()
	tables, err := postgres.Tables(ctx, conn)
	must("tables", err)
	yes, no := true, false
	for _, table := range tables {
		for _, change := range []struct {
			enabled bool
			force   *bool
		}{{true, &yes}, {false, &no}, {true, nil}} {
			_, err := postgres.SetRLS(ctx, conn, table.Schema, table.Name, change.enabled, change.force)
			must("row-level security of "+table.Name, err)
		}
	}
	_, err = postgres.FindTable(ctx, conn, "public", `x" or public.sprung() --`)
	if !errors.Is(err, postgres.ErrNoTable) {
		t.Errorf("a table that is none: %v", err)
	}
	_, err = postgres.TerminateSessions(ctx, super)
	must("terminate sessions", err)
}

// called returns how often a sequence was advanced, and resets it.
func called(t *testing.T, d *postgrestest.Database, sequence string) int {
	t.Helper()
	conn := d.Superuser(t, "app")
	var n int
	err := conn.QueryRow(t.Context(), "select case when is_called then last_value else 0 end from public."+sequence).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	allowed(t, conn, "select setval('public."+sequence+"', 1, false)")
	return n
}

func TestTraps(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	owner := d.Owner(t)
	allowed(t, owner, trapBase...)
	allowed(t, owner, shadows("public")...)
	allowed(t, owner, "create schema pg", "create schema holdfast", `create schema "$user"`)
	allowed(t, owner, shadows("holdfast")...) // "$user" of the appliance's role
	for _, setting := range []string{
		`search_path = "$user", public, pg_catalog`, "check_function_bodies = off", "quote_all_identifiers = on", "transform_null_equals = on", "role = 'app'",
	} {
		allowed(t, owner, "alter database app set "+setting, "alter role app set "+setting)
	}
	// In temporary schemas of a session that stays open.
	allowed(t, owner, "create temp view pg_roles as select public.sprung() as rolname", "create temp table pg_class (oid int)",
		"create function pg_temp.pg_get_userbyid(oid) returns name language plpgsql as 'begin perform public.sprung(); return null; end'")

	var path string
	if err := d.Owner(t).QueryRow(t.Context(), "show search_path").Scan(&path); err != nil || !strings.HasPrefix(path, `"$user", public`) {
		t.Fatalf("the path is not laid: %q, %v", path, err)
	}
	called(t, d, "sprung_by_appliance")

	t.Run("they work", func(t *testing.T) {
		for _, statement := range []string{
			"select count(*) from pg_class", "select pg_get_userbyid(10::pg_catalog.oid)", "select 'a'::pg_catalog.name = 'b'::pg_catalog.name",
			"select 'x'::name", "select 1::pg_catalog.int4 = 2::pg_catalog.int4", "insert into public.orders default values",
			"select pg_catalog.count(*) from public.v", "reindex table public.orders",
		} {
			conn := d.Superuser(t, "app")
			allowed(t, conn, `set search_path = "$user", public, pg_catalog`)
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Logf("%s: %v", statement, err)
			}
			if called(t, d, "sprung_by_appliance") == 0 {
				t.Errorf("%s: no trap", statement)
			}
		}
	})
	t.Run("the appliance's acts would be caught", func(t *testing.T) {
		conn := d.Superuser(t, "app")
		allowed(t, conn, "set search_path = public, pg_catalog")
		_, _ = postgres.Tables(t.Context(), conn)
		if called(t, d, "sprung_by_appliance") == 0 {
			t.Error("Tables with the tenant's path springs nothing")
		}
	})
	t.Run("the appliance", func(t *testing.T) {
		acts(t, d, func() *pgx.Conn { return d.Superuser(t, "app") })
		if n := called(t, d, "sprung_by_appliance"); n > 0 {
			t.Errorf("%d traps were sprung", n)
		}
		if found := harm(t, d.Superuser(t, "app")); len(found) > 0 {
			t.Errorf("afterwards: %s", strings.Join(found, "; "))
		}
	})
}

// Maintenance runs index expressions and the like as their owner, and barred from
// changing roles, whichever role runs it (CVE-2020-25695, CVE-2022-1552).
// Autovacuum runs as the superuser.
func TestMaintenanceRunsAsTheOwner(t *testing.T) {
	d := postgrestest.Instance(t)
	owner := d.Owner(t)
	allowed(t, owner,
		"create sequence public.sprung_by_appliance", "create sequence public.ran",
		`create function public.sprung(int) returns int language plpgsql immutable as $$ begin
			perform nextval('public.ran');
			if current_user = 'holdfast' then perform nextval('public.sprung_by_appliance'); end if;
			begin set local role holdfast; perform nextval('public.sprung_by_appliance'); exception when others then end;
			begin set local session authorization holdfast; perform nextval('public.sprung_by_appliance'); exception when others then end;
			begin reset role; execute 'alter role app superuser'; perform nextval('public.sprung_by_appliance'); exception when others then end;
			return $1; end $$`,
		"create table public.orders (n int)", "insert into public.orders select generate_series(1, 3)",
		"create index i on public.orders (public.sprung(n))", "alter table public.orders cluster on i",
		"create statistics public.st on public.sprung(n), n from public.orders",
		"create materialized view public.mv as select public.sprung(n) as n from public.orders", "create unique index on public.mv (n)",
	)
	super := d.Superuser(t, "app")
	// The control: the superuser does spring the trap.
	called(t, d, "ran")
	allowed(t, super, "select public.sprung(1)")
	if called(t, d, "sprung_by_appliance") == 0 {
		t.Fatal("the trap does not work")
	}
	for _, statement := range []string{
		"analyze public.orders", "vacuum full public.orders", "vacuum analyze public.orders", "reindex table public.orders",
		"reindex table concurrently public.orders", "cluster public.orders",
		"refresh materialized view public.mv", "refresh materialized view concurrently public.mv",
		"create index concurrently j on public.orders (public.sprung(n + 1))",
	} {
		allowed(t, owner, "insert into public.orders select max(n) + 1 from public.orders")
		called(t, d, "ran")
		if _, err := super.Exec(t.Context(), statement); err != nil {
			t.Logf("%s: %v", statement, err)
		}
		if called(t, d, "ran") == 0 && !strings.HasPrefix(statement, "vacuum analyze") {
			t.Errorf("%s: ran nothing, which shows nothing", statement)
		}
		if called(t, d, "sprung_by_appliance") > 0 {
			t.Errorf("%s: ran the owner's code as the superuser", statement)
		}
	}
	if found := harm(t, super); len(found) > 0 {
		t.Errorf("afterwards: %s", strings.Join(found, "; "))
	}
}

// Scripts of trusted extensions run as the superuser in a schema of the
// owner's choice (CVE-2020-14350, CVE-2022-2625, CVE-2023-39417).
func TestTrustedExtensionsAmongTraps(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	owner := d.Owner(t)
	allowed(t, owner, trapBase...)
	allowed(t, owner, "create schema traps")
	allowed(t, owner, shadows("traps")...)
	called(t, d, "sprung_by_appliance")
	super := d.Superuser(t, "app")
	rows, err := super.Query(t.Context(), "select distinct name::text from pg_available_extension_versions where trusted and name <> 'plpgsql' and not installed")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) < 5 {
		t.Fatalf("trusted extensions: %q, %v", names, err)
	}
	allowed(t, owner, "set search_path = traps, public, pg_catalog")
	made := 0
	for _, name := range names {
		// An extension that finds a trap where its own object should be is refused.
		if _, err := owner.Exec(t.Context(), "create extension "+pgx.Identifier{name}.Sanitize()+" schema traps cascade"); err == nil {
			made++
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	if made < len(names)/2 {
		t.Errorf("only %d of %d could be made, which shows little", made, len(names))
	}
	if n := called(t, d, "sprung_by_appliance"); n > 0 {
		t.Errorf("%d traps were sprung by extension scripts", n)
	}
	if found := harm(t, super); len(found) > 0 {
		t.Errorf("afterwards: %s", strings.Join(found, "; "))
	}
	// An object that already exists does not become the extension's.
	allowed(t, owner, "set search_path = public", "create schema before", "create function before.lo_oid(oid) returns oid language plpgsql as 'begin perform public.sprung(); return $1; end'", "create domain before.lo as oid")
	_, err = owner.Exec(t.Context(), "drop extension if exists lo; create extension lo schema before")
	if got := sqlState(err); got != "42710" && got != "55000" && got != "42723" {
		t.Errorf("over an object of the owner's: %v", err)
	}
}
