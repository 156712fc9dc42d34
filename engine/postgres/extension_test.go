package postgres_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/extensions"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
)

// withLibraries returns an instance that loads every library of the catalogue.
func withLibraries(t *testing.T) *postgrestest.Database {
	return postgrestest.InstanceWith(t, func(spec *postgres.Spec) {
		spec.Config.Settings = map[string]string{}
		for _, x := range extensions.Catalogue() {
			if x.Preload != "" {
				spec.Config.Preload = append(spec.Config.Preload, x.Preload)
			}
			maps.Copy(spec.Config.Settings, x.Settings)
		}
		for name, value := range spec.Config.Settings {
			spec.Config.Settings[name] = strings.ReplaceAll(value, "{database}", "app")
		}
	})
}

// allowedHere lists the catalogue's extensions that the machine has. The log names
// those that it lacks.
func allowedHere(t *testing.T, d *postgrestest.Database) (names []string) {
	for _, x := range extensions.Catalogue() {
		if x.Allowed() && installed(t, d, x.Name) {
			names = append(names, x.Name)
		}
	}
	if len(names) < 30 {
		t.Errorf("the machine has only %v", names)
	}
	return names
}

// Every extension of the catalogue that the machine has can be created, and with all
// of them the owner's dump and the appliance's contain nothing that the owner of
// another database with the same extensions could not restore.
func TestExtensions(t *testing.T) {
	t.Parallel()
	d, other := withLibraries(t), withLibraries(t)
	names := allowedHere(t, d)
	for _, to := range []*postgrestest.Database{d, other} {
		for _, name := range names {
			if err := makeExtension(t, to, name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, x := range known(t, d) {
		if slices.Contains(names, x.Name) && (x.Installed == "" || x.Owner != "holdfast" || x.Schema != x.InSchema() || x.Missing() || x.Update() != "" || !x.Loaded) {
			t.Errorf("%+v", x)
		}
	}
	owner := d.Owner(t)
	allowed(t, owner, "create table places (name citext, at cube, tags hstore)", "insert into places values ('Here', '(1,2)', 'a=>1')",
		"create index on places using gin (tags)", "create index on places (name)", "select * from pg_stat_statements limit 1", "select * from pg_buffercache limit 1",
		"select * from pgstattuple('places')", "select * from pgrowlocks('places')", "select pg_freespace('places')", "select pg_prewarm('places')")
	refused(t, owner, "42501", []string{"select pg_stat_statements_reset()"})
	if slices.Contains(names, "postgis") {
		allowed(t, owner, "create table spots (at geometry(Point, 4326))", "insert into spots values ('SRID=4326;POINT(1 2)')", "create index on spots using gist (at)",
			"select st_transform(at, 3857), at <-> at, at && at from spots", "select count(*) from spatial_ref_sys, geometry_columns",
			"analyze spots", "select st_estimatedextent('public', 'spots', 'at')", "select _postgis_index_extent('spots', 'at')", "revoke all on spots from app_readonly, public")
		refused(t, d.ReadOnly(t), "42501", []string{
			"select extensions.st_estimatedextent('public', 'spots', 'at')", "select extensions.st_estimatedextent('spots', 'at')",
			"select extensions._postgis_stats('public.spots', 'at')", "select extensions._postgis_index_extent('public.spots', 'at')",
			"select extensions._postgis_selectivity('public.spots', 'at', extensions.st_makepoint(1, 2))",
		})
	}
	if slices.Contains(names, "pg_partman") {
		allowed(t, owner, "create table parts (at timestamptz not null) partition by range (at)", "create table part (like parts)",
			"select partman.create_parent('public.parts', 'at', 'native', 'daily', p_template_table := 'public.part')", "insert into parts values (now())",
			"select partman.run_maintenance()")
		refused(t, owner, "42501", []string{"create table partman.t (n int)", "create function partman.f() returns int language sql as 'select 1'"})
	}
	restoresFrom(t, d, other)
	var dump bytes.Buffer
	if err := d.Supervisor.Dump(t.Context(), d.Spec.ID, d.Spec.Bin.Tool("pg_dump"), "app", time.Minute, &dump); err != nil || dump.Len() == 0 {
		t.Errorf("the appliance's dump: %d bytes, %v", dump.Len(), err)
	}
	for _, name := range slices.Backward(names) {
		if err := dropExtension(t, other, name); err != nil && !strings.Contains(err.Error(), "objects of the database need") {
			t.Errorf("drop %s: %v", name, err)
		}
	}
}

// restoresFrom restores the owner's dump of one database into another as its owner.
func restoresFrom(t *testing.T, d, other *postgrestest.Database) {
	t.Helper()
	dump := postgrestest.Run(t, postgrestest.Tool(d.Spec.Bin, "pg_dump", "--dbname="+ofPrograms(d.URL("app", d.Tenant.OwnerPassword))))
	restore := postgrestest.Tool(d.Spec.Bin, "psql", "--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", "--dbname="+ofPrograms(other.URL("app", other.Tenant.OwnerPassword)))
	restore.Stdin = strings.NewReader(dump)
	postgrestest.Run(t, restore)
	var name string
	if err := other.Owner(t).QueryRow(t.Context(), "select name::text from places where name = 'HERE' and tags ? 'a'").Scan(&name); err != nil || name != "Here" {
		t.Errorf("%q, %v", name, err)
	}
}

// An older version is updated, with its privileges.
func TestUpdateExtension(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	allowed(t, d.Superuser(t, "app"), "create extension pg_buffercache schema extensions version '1.2'", "create extension pgstattuple schema extensions version '1.4'")
	for _, name := range []string{"pg_buffercache", "pgstattuple", "pgstattuple"} {
		if err := makeExtension(t, d, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, x := range known(t, d) {
		if x.Update() != "" || (x.Name == "pgstattuple" && x.Installed == "1.4") {
			t.Errorf("%+v", x)
		}
	}
	allowed(t, d.Owner(t), "select * from pg_buffercache limit 1", "create table t (n int)", "select * from pgstattuple('t')")
	allowed(t, d.Owner(t), "create extension citext version '1.4'")
	refusedExtension(t, d, "citext", "belongs to app, who updates it")
}

// The jobs of pg_cron run as the role that schedules them, and only in its
// database.
func TestCron(t *testing.T) {
	t.Parallel()
	d := withLibraries(t)
	if !installed(t, d, "pg_cron") {
		return
	}
	if err := makeExtension(t, d, "pg_cron"); err != nil {
		t.Fatal(err)
	}
	for _, x := range known(t, d) {
		if got := strings.Join(x.Tables, " "); x.Name == "pg_cron" && got != "cron.job cron.job_run_details" {
			t.Errorf("the tables of pg_cron: %s", got)
		}
	}
	owner := d.Owner(t)
	allowed(t, owner, "create table ran (who text, super bool)")
	refused(t, owner, "42501", []string{
		"select cron.schedule_in_database('x', '* * * * *', 'select 1', 'postgres')", "select cron.schedule_in_database('x', '* * * * *', 'select 1', 'app', 'holdfast')",
		"select cron.alter_job(1)", "insert into cron.job (schedule, command, username) values ('* * * * *', 'select 1', 'holdfast')",
		"update cron.job set username = 'holdfast'", "create trigger t before insert on cron.job execute function pg_catalog.suppress_redundant_updates_trigger()",
	})
	refused(t, d.ReadOnly(t), "42501", []string{"select cron.schedule('* * * * *', 'select 1')", "select * from cron.job"})
	allowed(t, owner, "select cron.schedule('now', '* * * * *', $$insert into ran select current_user, rolsuper from pg_roles where rolname = current_user$$)")
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		var who string
		var super bool
		err := owner.QueryRow(t.Context(), "select who, super from ran limit 1").Scan(&who, &super)
		if err == nil {
			if who != "app" || super {
				t.Errorf("ran as %s, superuser %v", who, super)
			}
			return
		}
		if err != pgx.ErrNoRows || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
