package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
)

func TestCheckRelations(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	super := d.Superuser(t, "app")
	allowed(t, super,
		"create table public.orders as select n, md5(n::text) as text from generate_series(1, 1000) n",
		// An order that later changes, as a collation's can.
		"create function public.compare(int4, int4) returns int4 language sql immutable as 'select pg_catalog.btint4cmp($1, $2)'",
		`create operator class public.some_order for type int4 using btree as
			operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 public.compare(int4, int4)`,
		"create index ordered on public.orders (n public.some_order)", "create index plain on public.orders (n, text)")
	ctx := within(t, time.Minute)
	checked, err := d.Supervisor.CheckRelations(ctx, d.Spec.ID)
	if err != nil || !checked.Structure || !checked.Checksums || checked.Databases != 4 || checked.Tables < 200 || checked.Indexes < 300 {
		t.Fatalf("a sound instance: %+v, %v", checked, err)
	}

	allowed(t, super, "create or replace function public.compare(int4, int4) returns int4 language sql immutable as 'select pg_catalog.btint4cmp($2, $1)'")
	if _, err := d.Supervisor.CheckRelations(ctx, d.Spec.ID); !errors.Is(err, postgres.ErrCorrupt) || !strings.Contains(err.Error(), "ordered") {
		t.Errorf("an index out of order: %v", err)
	}
	allowed(t, super, "drop index public.ordered")

	allowed(t, super, "update pg_catalog.pg_class set relfrozenxid = pg_catalog.pg_current_xact_id()::xid where oid = 'public.orders'::regclass")
	if _, err := d.Supervisor.CheckRelations(ctx, d.Spec.ID); !errors.Is(err, postgres.ErrCorrupt) || !strings.Contains(err.Error(), "orders") {
		t.Errorf("tuples older than their table: %v", err)
	}
}

// The checks run as the superuser in the tenant's database, and execute nothing
// that the tenant made, not even what the planner would evaluate of an index.
func TestCheckRelationsAmongTraps(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	owner := d.Owner(t)
	allowed(t, owner, trapBase...)
	allowed(t, owner, shadows("public")...)
	allowed(t, owner,
		"create index folded on public.orders ((public.sprung(1) + n))", // folded at planning
		"create statistics public.folded_too on (public.sprung(1) + n), n from public.orders",
		"create index composite on public.orders (c, k)",
		"create table public.pairs (p public.pair, s public.span)", "create index on public.pairs (p)", "create index on public.pairs (s)",
		"insert into public.orders (n) select generate_series(1, 100)",
		"insert into public.pairs select row(n, 'a')::public.pair, public.span(n, n + 2) from generate_series(1, 100) n",
		`alter database app set search_path = public, "$user", pg_catalog`, "alter database app set role = 'app'",
	)
	// The control: a SELECT does spring the trap.
	sprung := func() int { return called(t, d, "sprung_by_appliance") }
	sprung()
	allowed(t, d.Superuser(t, "app"), "select count(*) from public.orders")
	if sprung() == 0 {
		t.Fatal("the planner springs no trap, which shows little")
	}
	allowed(t, d.Superuser(t, "postgres"), "alter database app with allow_connections false")
	if _, err := d.Supervisor.CheckRelations(within(t, time.Minute), d.Spec.ID); err != nil {
		t.Errorf("among traps: %v", err)
	}
	if n := sprung(); n > 0 {
		t.Errorf("%d traps were sprung", n)
	}
}

// Names that are not UTF-8, as a database in the encoding SQL_ASCII may have, keep no relation from being checked.
func TestCheckRelationsOfAnyName(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	allowed(t, d.Superuser(t, "postgres"), "create database bytes encoding 'SQL_ASCII' locale 'C' template template0")
	allowed(t, d.Superuser(t, "bytes"), "set client_encoding = SQL_ASCII", `do $$ begin execute 'create table public."' || convert_from('\x74ff', 'SQL_ASCII') || '" as select 1 as n'; end $$`)
	checked, err := d.Supervisor.CheckRelations(within(t, time.Minute), d.Spec.ID)
	if err != nil || checked.Databases != 5 {
		t.Errorf("%+v, %v", checked, err)
	}
}

// What a tenant has locked by a prepared transaction, which a backup contains, holds up no check.
func TestCheckRelationsBesidePrepared(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = map[string]string{"max_prepared_transactions": "5"} })
	allowed(t, d.Owner(t), "create table held (n int)",
		"begin", "lock table held in access exclusive mode", "prepare transaction 'a table'",
		"begin", "alter database app set work_mem = '8MB'", "prepare transaction 'the database'")
	if checked, err := d.Supervisor.CheckRelations(within(t, 30*time.Second), d.Spec.ID); err != nil || checked.Tables < 200 {
		t.Errorf("%+v, %v", checked, err)
	}
}

// Without the files of an extension, what needs them is not checked, and all else is.
func TestCheckRelationsWithoutLibrary(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	allowed(t, d.Owner(t), "create extension citext", "create table names (name citext)", "create index on names (name)", "insert into names values ('a'), ('b')")
	before, err := d.Supervisor.CheckRelations(t.Context(), d.Spec.ID)
	if err != nil || len(before.Missing) > 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	allowed(t, d.Superuser(t, "app"), "update pg_proc set probin = '$libdir/gone' where proname ~ '^citext'", "update pg_extension set extname = 'gone' where extname = 'citext'")
	after, err := d.Supervisor.CheckRelations(t.Context(), d.Spec.ID)
	if err != nil || after.Indexes != before.Indexes-1 || len(after.Missing) != 1 || !strings.HasPrefix(after.Missing[0], "gone: install ") {
		t.Errorf("%+v, then %+v, %v", before, after, err)
	}
}
