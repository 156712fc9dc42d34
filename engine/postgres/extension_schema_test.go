package postgres_test

import (
	"strings"
	"testing"

	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
)

// The schema belongs to the superuser, both roles may use it, and dumps leave it
// out.
func TestExtensionSchema(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	for name, statement := range map[string]string{
		"drop":           "drop schema extensions cascade",
		"rename":         "alter schema extensions rename to old",
		"own":            "alter schema extensions owner to app",
		"take away":      "alter extension plpgsql drop schema extensions",
		"table":          "create table extensions.t (n int)",
		"function":       "create function extensions.f() returns int language sql as 'select 1'",
		"operator":       "create operator extensions.### (rightarg = int, function = pg_catalog.int4um)",
		"type":           "create domain extensions.d as int",
		"collation":      "create collation extensions.c from \"C\"",
		"text search":    "create text search configuration extensions.c (copy = pg_catalog.simple)",
		"move":           "create function public.moved() returns int language sql as 'select 1'; alter function public.moved() set schema extensions",
		"move extension": "create extension hstore schema public; alter extension hstore set schema extensions",
		"drop all owned": "drop owned by holdfast cascade",
		"reassign":       "reassign owned by holdfast to app",
		"privileges":     "alter default privileges for role holdfast in schema extensions grant all on functions to app",
	} {
		t.Run(name, func(t *testing.T) { refused(t, d.Owner(t), "42501 2BP01", []string{statement}) })
	}
	for name, conn := range map[string]*pgx.Conn{"owner": d.Owner(t), "reader": d.ReadOnly(t)} {
		var path string
		var use, create bool
		if err := conn.QueryRow(t.Context(), `select array_to_string(current_schemas(false), ' '),
			has_schema_privilege('extensions', 'usage'), has_schema_privilege('extensions', 'create')`).Scan(&path, &use, &create); err != nil {
			t.Fatal(err)
		}
		if path != "public extensions" || !use || create {
			t.Errorf("%s: search path %s, usage %v, create %v", name, path, use, create)
		}
	}
	dump := postgrestest.Run(t, postgrestest.Tool(d.Spec.Bin, "pg_dump", "--dbname="+ofPrograms(d.URL("app", d.Tenant.OwnerPassword))))
	if strings.Contains(dump, "extensions") {
		t.Errorf("a dump contains the schema:\n%s", dump)
	}
}
