package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/engine/certificates"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
)

// upgradeOf returns the upgrade of a database, whose server it stops, to a version.
func upgradeOf(t *testing.T, d *postgrestest.Database, major int) postgres.Upgrade {
	t.Helper()
	if err := d.Supervisor.Stop(t.Context(), d.Spec.ID); err != nil {
		t.Fatal(err)
	}
	from := d.Spec
	var err error
	if from.Config.SocketDir, err = postgres.SocketDir(filepath.Dir(from.Dir)); err != nil {
		t.Fatal(err)
	}
	to := from
	to.Bin, to.Dir = postgrestest.Major(t, major), filepath.Join(filepath.Dir(d.Spec.Dir), "upgraded")
	return postgres.Upgrade{From: from, To: to, Database: d.Tenant.Database, Log: slog.New(slog.DiscardHandler)}
}

// fillForUpgrade makes what pg_upgrade has to bring over, and settings that would
// stop or steer it.
func fillForUpgrade(t *testing.T, d *postgrestest.Database) {
	t.Helper()
	if err := makeExtension(t, d, "cube"); err != nil { // in the appliance's schema
		t.Fatal(err)
	}
	gone := d.AddRole(t, model.AccessWrite)
	allowed(t, d.Owner(t), "create schema shared", "grant usage, create on schema shared to "+gone.Name)
	allowed(t, gone.Connect(t), "create table shared.kept (n int primary key)", "create table shared.child (n int references shared.kept)", "insert into shared.kept values (1)")
	dropRole(t, d, gone.Name)
	allowed(t, d.Owner(t), "create extension hstore", "create table parts (n int, h hstore) partition by range (n)",
		"create table low partition of parts for values from (0) to (1000)", "create table high partition of parts for values from (1000) to (2000)",
		"insert into parts select n, hstore('n', n::text) from generate_series(0, 1999) n", "create index on parts (n)",
		"create table places (at cube)", "select lo_from_bytea(4711, 'large')", "create function called() returns int immutable language plpgsql as $$ begin "+
			"if current_user <> 'app' then raise exception 'run by %', current_user; end if; return 1; end $$",
		"create table indexed (n int)", "insert into indexed select generate_series(1, 100)", "create index on indexed ((n + called()))",
		"create collation german (provider = icu, locale = 'de')", "create view shown as select n, called() from indexed", "create materialized view kept as select sum(n) from parts", "analyze",
		"select set_config('search_path', '', false)", "alter role app set search_path from current", // pg_dumpall writes it as "TO ;"
		"alter role app in database app set local_preload_libraries = 'absent'", "alter database app set work_mem = '5MB'",
		"alter database app set statement_timeout = '1ms'", "alter database app set role = 'app_readonly'",
		"alter database app set default_transaction_read_only = on", "alter database app connection limit 0")
}

// An upgrade brings extensions, large objects, partitions and privileges, and no
// setting of the tenant stops or steers it.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for _, majors := range [][2]int{{0, 18}, {16, 18}, {0, 16}} {
		bin := postgrestest.Binaries(t)
		if majors[0] != 0 {
			bin = postgrestest.Major(t, majors[0])
		}
		t.Run(bin.Version+" to "+postgrestest.Major(t, majors[1]).Version, func(t *testing.T) {
			if bin.Major >= majors[1] {
				t.Skip("the tests run on a version as new as that")
			}
			t.Parallel()
			upgradeAndCheck(t, postgrestest.InstanceOf(t, bin, func(*postgres.Spec) {}), majors[1])
		})
	}
}

func upgradeAndCheck(t *testing.T, d *postgrestest.Database, major int) {
	t.Helper()
	fillForUpgrade(t, d)
	allowed(t, d.Superuser(t, "app"), "update pg_collation set collversion = '1.2' where collname = 'german'")
	u := upgradeOf(t, d, major)
	var steps []string
	u.Step = func(s postgres.UpgradeStep) error { steps = append(steps, string(s)); return nil }
	done, err := u.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log, _, err := postgres.LogTail(u.To.Dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "WARNING: ") && !strings.Contains(line, "has version mismatch") {
			t.Errorf("the new server's log has the warning %s", line)
		}
	}
	if done.Analyzed != (major < 18) {
		t.Errorf("statistics are complete: %v", done.Analyzed)
	}
	if len(done.Notes) != 1 || !strings.Contains(done.Notes[0], "ALTER COLLATION public.german REFRESH VERSION") || strings.Join(steps, " ") != "preparing upgrading analyzing" {
		t.Errorf("notes %q, steps %q", done.Notes, steps)
	}
	if err := os.RemoveAll(u.From.Dir); err != nil { // the copy is not needed any more
		t.Fatal(err)
	}
	next := *d
	next.Spec.Bin, next.Spec.Dir = u.To.Bin, u.To.Dir
	if err := d.CA.Issue(certificates.InDataDirectory(u.To.Dir), []string{"127.0.0.1"}, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := next.Supervisor.Start(t.Context(), next.Spec); err != nil {
		t.Fatal(err)
	}
	super := next.Superuser(t, "app")
	var got string
	if err := super.QueryRow(t.Context(), `select string_agg(coalesce(r.rolname, '-') || ' ' || coalesce(d.datname, '-') || ' ' || c, '; ' order by 1)
		from pg_db_role_setting s left join pg_roles r on r.oid = setrole left join pg_database d on d.oid = setdatabase, unnest(setconfig) c
		where c ~ '^(search_path|local_preload|work_mem|statement_timeout=1ms|role|default_transaction_read_only)' and coalesce(r.rolname, 'app') = 'app'`).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if want := []string{"app app local_preload_libraries=absent", "- app work_mem=5MB", "- app role=app_readonly", `app - search_path=`, "- app statement_timeout=1ms"}; !containsAll(got, want) {
		t.Errorf("the settings are %s, want %q among them", got, want)
	}
	allowed(t, super, "alter role app in database app reset all", "alter role app reset all", "alter database app reset all")
	provisioned(t, &next)
	err = next.Owner(t).QueryRow(t.Context(), `select concat_ws(' ', current_setting('server_version_num')::int / 10000, (select count(*) from parts),
		(select h -> 'n' from parts where n = 1500), convert_from(lo_get(4711), 'UTF8'), (select sum from kept), (select count(*) from shown),
		(select n_distinct from pg_stats where tablename = 'indexed' and attname = 'n'), current_setting('data_checksums'))`).Scan(&got)
	if want := "2000 1500 large 1999000 100 -1 on"; err != nil || !strings.HasSuffix(got, want) || !strings.HasPrefix(next.Spec.Bin.Version, got[:2]) {
		t.Errorf("read %q, want %q; %v", got, want, err)
	}
	allowed(t, next.Owner(t), "insert into shared.child values (1)", "alter table shared.kept add m int", "drop table shared.child, shared.kept")
	refused(t, next.ReadOnly(t), noPrivilege, []string{"select lo_from_bytea(1, 'x')", "select pg_advisory_lock(1)"})
	refused(t, next.Owner(t), noPrivilege, []string{"create table extensions.t (n int)"})
	if found := harm(t, super); len(found) > 0 {
		t.Errorf("afterwards: %s", strings.Join(found, "; "))
	}
	dump := postgrestest.Run(t, postgrestest.Tool(next.Spec.Bin, "pg_dump", "--dbname="+ofPrograms(next.URL("app", next.Tenant.OwnerPassword))))
	if strings.Contains(dump, "CREATE SCHEMA extensions") || strings.Contains(dump, "ON FUNCTION pg_catalog") {
		t.Error("the owner's dump contains what only a superuser could restore")
	}
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// The refusals of pg_upgrade name the object and do not show verifiers of passwords.
func TestUpgradeRefused(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]struct{ sql, want string }{
		"view of a column that 18 lacks": {"create view old as select buffers_backend from pg_stat_bgwriter", "VIEW old"},
		"column of a type that changes":  {"create table old (a aclitem)", "old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := postgrestest.Instance(t)
			if d.Spec.Bin.Major >= 16 {
				t.Skip("the tests run on a version for which that is no obstacle")
			}
			allowed(t, d.Owner(t), made.sql)
			u := upgradeOf(t, d, 18)
			_, err := u.Run(t.Context())
			if model.CodeOf(err) != model.CodeConflict || !strings.Contains(model.PublicMessage(err), made.want) || strings.Contains(err.Error(), "SCRAM-SHA-256$") {
				t.Errorf("refused with %v", err)
			}
			if err := postgres.EndUpgrade(context.WithoutCancel(t.Context()), always(u.To.Bin), u.From.Dir, u.To.Dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// The refusals name the database of an object that is not in the tenant's own.
func TestUpgradeRefusedBeside(t *testing.T) {
	t.Parallel()
	for _, made := range []struct{ sql, want, not string }{
		{"create view old%s as select buffers_backend from pg_stat_bgwriter", `VIEW old2 holdfast: column pg_stat_bgwriter.buffers_backend does not exist in the database beside`, ""},
		{"create table old%s (a aclitem)", "public.old2.a in the database beside", "public.old1.a in the database"},
	} {
		d := postgrestest.Instance(t)
		if d.Spec.Bin.Major >= 16 {
			t.Skip("the tests run on a version for which that is no obstacle")
		}
		allowed(t, d.Superuser(t, "postgres"), "create database beside template template0")
		if made.not != "" {
			allowed(t, d.Superuser(t, "app"), fmt.Sprintf("set search_path = public; "+made.sql, "1"))
		}
		allowed(t, d.Superuser(t, "beside"), fmt.Sprintf("set search_path = public; "+made.sql, "2"))
		u := upgradeOf(t, d, 18)
		_, err := u.Run(t.Context())
		if got := model.PublicMessage(err); !strings.Contains(got, made.want) || made.not != "" && strings.Contains(got, made.not) {
			t.Errorf("refused with %s", got)
		}
		if err := postgres.EndUpgrade(context.WithoutCancel(t.Context()), always(u.To.Bin), u.From.Dir, u.To.Dir); err != nil {
			t.Error(err)
		}
	}
}

// A step that is refused ends the upgrade, and nothing runs on.
func TestUpgradeEnded(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for _, at := range []postgres.UpgradeStep{postgres.StepUpgrading, postgres.StepAnalyzing} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			u := upgradeOf(t, postgrestest.Instance(t), 18)
			if u.From.Bin.Major >= 18 {
				t.Skip("the tests run on the newest version")
			}
			u.Step = func(s postgres.UpgradeStep) error {
				if s == at {
					return stop
				}
				return nil
			}
			if _, err := u.Run(t.Context()); !errors.Is(err, stop) {
				t.Errorf("ended with %v", err)
			}
			if postgres.IsServed(u.From.Dir) || postgres.IsServed(u.To.Dir) {
				t.Error("a server runs on")
			}
		})
	}
}

// Missing programs are named with the package that has them.
func TestUpgradeWithoutPrograms(t *testing.T) {
	t.Parallel()
	from := postgrestest.Binaries(t)
	u := postgres.Upgrade{From: postgres.Spec{Bin: from}, To: postgres.Spec{Bin: postgrestest.Major(t, 17)}}
	_, err := u.Run(t.Context())
	if model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "pg_upgrade") || !strings.Contains(err.Error(), "postgresql-17") {
		t.Errorf("refused with %v", err)
	}
}
