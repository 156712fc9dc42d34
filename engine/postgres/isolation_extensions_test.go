package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/extensions"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// makeExtension has the appliance create or update an extension.
func makeExtension(t *testing.T, d *postgrestest.Database, name string) error {
	t.Helper()
	return asSuperuser(t, d, func(conn *pgx.Conn) error {
		_, err := postgres.CreateExtension(t.Context(), conn, d.Spec.Bin.Major, name, "app")
		return err
	})
}

func dropExtension(t *testing.T, d *postgrestest.Database, name string) error {
	t.Helper()
	return asSuperuser(t, d, func(conn *pgx.Conn) error { return postgres.DropExtension(t.Context(), conn, name) })
}

// asSuperuser runs act in a session of its own.
func asSuperuser(t *testing.T, d *postgrestest.Database, act func(*pgx.Conn) error) error {
	t.Helper()
	conn, err := d.Supervisor.Connect(t.Context(), d.Spec.ID, "app")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	return act(conn)
}

// refusedExtension checks that the appliance refuses an extension, with words of the
// reason.
func refusedExtension(t *testing.T, d *postgrestest.Database, name, why string) {
	t.Helper()
	err := makeExtension(t, d, name)
	if code := model.CodeOf(err); code != model.CodeConflict && code != model.CodeForbidden || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: %v, want a refusal with %q", name, err, why)
	}
}

// installed reports whether the machine has the extension.
func installed(t *testing.T, d *postgrestest.Database, name string) bool {
	t.Helper()
	return testenv.Extension(t, name, slices.ContainsFunc(known(t, d), func(x postgres.Extension) bool { return x.Name == name && x.Available != "" }))
}

func known(t *testing.T, d *postgrestest.Database) (all []postgres.Extension) {
	t.Helper()
	if err := asSuperuser(t, d, func(conn *pgx.Conn) (err error) {
		all, err = postgres.Extensions(t.Context(), conn)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// planted are the tenant's objects that a script would call if names led to them.
// Each leaves a mark if a superuser runs it.
var planted = []string{
	"create table if not exists public.marks (who text)", "grant all on public.marks to public",
	`create or replace function public.mark() returns void language plpgsql as $$ begin
		if (select rolsuper from pg_roles where rolname = current_user) then insert into public.marks values (current_user); end if; end $$`,
	"create or replace function public.lower(varchar) returns text language plpgsql as $$ begin perform public.mark(); return 'x'; end $$",
	"create or replace function public.format(text, text) returns text language plpgsql as $$ begin perform public.mark(); return 'x'; end $$",
	"create or replace function public.set_config(text, text, boolean) returns text language plpgsql as $$ begin perform public.mark(); return 'x'; end $$",
	"create or replace function public.eq(text, text) returns boolean language plpgsql as $$ begin perform public.mark(); return true; end $$",
	"create operator public.= (leftarg = text, rightarg = text, function = public.eq)",
}

func unmarked(t *testing.T, d *postgrestest.Database) {
	t.Helper()
	var marks int
	if err := d.Superuser(t, "app").QueryRow(t.Context(), "select count(*) from public.marks").Scan(&marks); err != nil || marks > 0 {
		t.Errorf("a tenant's function ran as the superuser %d times, %v", marks, err)
	}
}

// What a tenant prepares before the appliance runs a script.
func TestExtensionAttacks(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]func(*testing.T, *postgrestest.Database){
		"update in the tenant's schema": func(t *testing.T, d *postgrestest.Database) {
			allowed(t, d.Superuser(t, "app"), "create extension pgstattuple schema public version '1.4'")
			refusedExtension(t, d, "pgstattuple", `"public", which is not the appliance's alone`)
		},
		"required extension in the tenant's schema": func(t *testing.T, d *postgrestest.Database) {
			allowed(t, d.Owner(t), "create extension cube schema public")
			refusedExtension(t, d, "earthdistance", `"public", which is not the appliance's alone`)
			allowed(t, d.Owner(t), "drop extension cube")
			if err := makeExtension(t, d, "earthdistance"); err != nil {
				t.Error(err)
			}
		},
		"schema made first": func(t *testing.T, d *postgrestest.Database) {
			dropHeldSchema(t, d)
			allowed(t, d.Owner(t), "create schema extensions")
			refusedExtension(t, d, "bloom", "it belongs to app")
			allowed(t, d.Owner(t), "drop schema extensions")
			if err := makeExtension(t, d, "bloom"); err != nil {
				t.Error(err)
			}
		},
		"right to create in the schema": func(t *testing.T, d *postgrestest.Database) {
			allowed(t, d.Superuser(t, "app"), "grant create on schema extensions to app")
			refusedExtension(t, d, "bloom", "may be made in it by app")
		},
		"right to create for everyone": func(t *testing.T, d *postgrestest.Database) {
			allowed(t, d.Superuser(t, "app"), "grant create on schema extensions to public")
			refusedExtension(t, d, "bloom", "may be made in it by PUBLIC")
		},
		"objects left in the schema": func(t *testing.T, d *postgrestest.Database) {
			for kind, made := range map[string][2]string{
				"function":      {"create function extensions.f() returns int language sql as 'select 1'", "drop function extensions.f"},
				"relation":      {"create table extensions.t (n int)", "drop table extensions.t"},
				"operator":      {"create operator extensions.### (rightarg = int, function = pg_catalog.int4um)", "drop operator extensions.### (none, int)"},
				"type":          {"create domain extensions.d as int", "drop domain extensions.d"},
				"collation":     {`create collation extensions.c from "C"`, "drop collation extensions.c"},
				"configuration": {"create text search configuration extensions.c (copy = pg_catalog.simple)", "drop text search configuration extensions.c"},
				"dictionary":    {"create text search dictionary extensions.c (template = pg_catalog.simple)", "drop text search dictionary extensions.c"},
				"conversion":    {"create conversion extensions.c for 'UTF8' to 'LATIN1' from utf8_to_iso8859_1", "drop conversion extensions.c"},
			} {
				allowed(t, d.Superuser(t, "app"), "grant create on schema extensions to app")
				allowed(t, d.Owner(t), made[0])
				allowed(t, d.Superuser(t, "app"), "revoke create on schema extensions from app")
				refusedExtension(t, d, "bloom", kind)
				allowed(t, d.Owner(t), made[1])
			}
		},
		"event trigger": func(t *testing.T, d *postgrestest.Database) {
			allowed(t, d.Owner(t), "create function public.et() returns event_trigger language plpgsql as 'begin perform public.mark(); end'")
			allowed(t, d.Superuser(t, "app"), "create event trigger e on ddl_command_end execute function public.et()")
			refusedExtension(t, d, "bloom", "event triggers")
			allowed(t, d.Superuser(t, "app"), "drop event trigger e", "truncate public.marks")
		},
		"settings of the database": func(t *testing.T, d *postgrestest.Database) {
			owner := d.Owner(t)
			allowed(t, owner, "do 'begin end'") // loads PL/pgSQL, whose settings are then known
			for _, setting := range []string{
				"search_path = public, pg_catalog", "role = 'app'", "default_table_access_method = 'nothing'", "default_tablespace = 'nothing'",
				"check_function_bodies = off", "transform_null_equals = on", "quote_all_identifiers = on", "statement_timeout = '1ms'",
				"default_transaction_read_only = on", "standard_conforming_strings = off", "backslash_quote = on", "row_security = off",
				"plpgsql.extra_errors = 'all'", "local_preload_libraries = 'nothing'", "xmloption = 'document'", "client_encoding = 'SQL_ASCII'",
				"default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on", "lock_timeout = '1ms'",
			} {
				allowed(t, owner, "alter database app set "+setting)
				for _, name := range []string{"earthdistance", "pg_buffercache", "citext"} {
					if err := makeExtension(t, d, name); err != nil {
						t.Errorf("%s: %v", setting, err)
					}
				}
				for _, name := range []string{"earthdistance", "cube", "pg_buffercache", "citext"} {
					if err := dropExtension(t, d, name); err != nil {
						t.Errorf("%s: %v", setting, err)
					}
				}
				if err := asSuperuser(t, d, func(conn *pgx.Conn) error {
					_, err := conn.Exec(t.Context(), "alter database app reset all")
					return err
				}); err != nil {
					t.Error(err)
				}
			}
		},
		"cascade from public": func(t *testing.T, d *postgrestest.Database) {
			if err := makeExtension(t, d, "bloom"); err != nil {
				t.Error(err)
			}
			allowed(t, d.Owner(t), "create table public.t (n int)", "create index on public.t using bloom (n)")
			allowed(t, d.Owner(t), "create schema keep", "alter table public.marks set schema keep", "drop schema public cascade", "create table keep.t (n int)", "create index on keep.t using bloom (n)",
				"create schema public", "alter table keep.marks set schema public")
		},
		"changes of what the appliance made": func(t *testing.T, d *postgrestest.Database) {
			for _, name := range []string{"earthdistance", "pg_prewarm"} {
				if err := makeExtension(t, d, name); err != nil {
					t.Error(err)
				}
			}
			allowed(t, d.Owner(t), "create function public.f() returns int language sql as 'select 1'")
			refused(t, d.Owner(t), "42501", []string{
				"drop extension earthdistance", "alter extension earthdistance update", "alter extension earthdistance set schema public",
				"alter extension earthdistance add function public.f()", "alter extension cube drop type extensions.cube",
				"create or replace function extensions.earth() returns float8 language sql as 'select 1::float8'",
				"alter function extensions.earth() owner to app", "drop function extensions.earth()", "comment on extension cube is 'x'",
				"select extensions.autoprewarm_start_worker()", "select extensions.autoprewarm_dump_now()",
			})
			refused(t, d.ReadOnly(t), "42501", []string{"select extensions.autoprewarm_start_worker()", "select extensions.autoprewarm_dump_now()"})
		},
		"trusted extension of the tenant in the schema": func(t *testing.T, d *postgrestest.Database) {
			allowed(t, d.Owner(t), "create extension cube schema extensions")
			if err := makeExtension(t, d, "earthdistance"); err != nil {
				t.Error(err)
			}
			allowed(t, d.Owner(t), "create function public.g() returns int language sql as 'select 1'", "alter extension cube add function public.g()")
			refused(t, d.Owner(t), "42501", []string{"alter extension cube set schema public", "alter function extensions.cube_in(cstring) owner to app"})
			allowed(t, d.Owner(t), "drop extension cube cascade")
		},
		"forbidden": func(t *testing.T, d *postgrestest.Database) {
			for _, x := range extensions.Catalogue() {
				if !x.Allowed() {
					refusedExtension(t, d, x.Name, "is not to be had")
				}
			}
			for _, name := range []string{"", "plpgsql", `x"; drop schema public cascade; --`, "../../tmp/attack", "nothing"} {
				refusedExtension(t, d, name, "is not to be had")
			}
		},
		"pg_partman's schema made first": func(t *testing.T, d *postgrestest.Database) {
			if !installed(t, d, "pg_partman") {
				return
			}
			allowed(t, d.Owner(t), "create schema partman", "create function partman.format(text, text) returns text language plpgsql as $$ begin perform public.mark(); return 'x'; end $$")
			refusedExtension(t, d, "pg_partman", `"partman", which is not the appliance's alone`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := postgrestest.Instance(t)
			allowed(t, d.Owner(t), planted...)
			attack(t, d)
			unmarked(t, d)
		})
	}
}

func dropHeldSchema(t *testing.T, d *postgrestest.Database) {
	t.Helper()
	allowed(t, d.Superuser(t, "app"), "alter extension plpgsql drop schema extensions", "drop schema extensions")
}

// A tenant that takes a lock, or creates what the appliance is about to create, at
// the same moment.
func TestExtensionBesideTenant(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	dropHeldSchema(t, d)
	owner := d.Owner(t)
	allowed(t, owner, "begin", "create schema extensions")
	refusedExtension(t, d, "bloom", "another session holds")
	allowed(t, owner, "commit")
	refusedExtension(t, d, "bloom", "it belongs to app")
	allowed(t, owner, "drop schema extensions")
	if err := makeExtension(t, d, "bloom"); err != nil {
		t.Error(err)
	}
	allowed(t, owner, "create table t (n int)", "create index i on t using bloom (n)")
	err := dropExtension(t, d, "bloom")
	if model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "index public.i depends on") {
		t.Errorf("%v", err)
	}
	allowed(t, owner, "drop table t")
	for _, want := range []model.Code{"", model.CodeNotFound} {
		if err := dropExtension(t, d, "bloom"); err != nil && model.CodeOf(err) != want || err == nil && want != "" {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
