package engine

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

	"holdfast/engine/connstring"
	"holdfast/engine/databases"
	"holdfast/engine/imports"
	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
	"holdfast/internal/testenv"
)

// older starts a PostgreSQL that is too old for databases here. It is downloaded once for all runs.
func older(t *testing.T, version embeddedpostgres.PostgresVersion) databases.Connection {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	password, home := rand.Text(), t.TempDir()
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(version).
		CachePath(filepath.Join(cache, "holdfast-test")).
		BinariesPath(filepath.Join(home, "bin")).RuntimePath(filepath.Join(home, "run")).DataPath(filepath.Join(home, "data")).
		Port(uint32(port)).Username("old").Password(password).Database("old").
		StartParameters(map[string]string{"unix_socket_directories": "", "fsync": "off", "wal_level": "logical", "max_wal_senders": "10"}).
		StartTimeout(time.Minute).Logger(io.Discard))
	if err := server.Start(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("start PostgreSQL %s: %v", version, err)
		}
		t.Skipf("PostgreSQL %s is neither kept from an earlier run nor to be had now: %v", version, err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop PostgreSQL %s: %v", version, err)
		}
	})
	return databases.Connection{Target: connstring.Target{Host: "127.0.0.1", Port: port, Database: "old", User: "old", Password: model.NewSecret(password)}}
}

func TestImportFromTheOldestMajor(t *testing.T) {
	t.Parallel()
	source := older(t, embeddedpostgres.V9)
	for _, sql := range []string{
		"create type mood as enum ('sad', 'happy')",
		"create table parent (id serial primary key, m mood, t text default 'x', tags text[])",
		"create table child (extra int) inherits (parent)",
		"insert into parent (m, tags) select 'sad', '{a,b}' from generate_series(1, 500)",
		"insert into child (m, extra) select 'happy', n from generate_series(1, 100) n",
		"create materialized view summed as select m, count(*) from parent group by m",
		"create function f(int) returns int language plpgsql as 'begin return $1; end'",
		"create trigger t before update on parent for each row execute procedure suppress_redundant_updates_trigger()",
		"create aggregate total (int) (sfunc = int4pl, stype = int, initcond = '0')",
		"select lo_from_bytea(4711, 'large')",
		"alter table parent enable row level security",
		"create policy p on parent using (id > 0)",
	} {
		run(t, source, sql)
	}
	a := startMajors(t)
	record := a.awaitImport(t, a.beginImport(t, imports.NewImport{
		Name: "followed", SourceURL: model.NewSecret(source.URL()), Follow: true, Publication: "everything", Version: "18",
	}).ID)
	if record.Status != model.ImportFailed || !strings.Contains(record.Error, "only 10 and newer can be followed: import it without mode follow") {
		t.Errorf("followed: %s %s", record.Status, record.Error)
	}
	record, c := a.imported(t, imports.NewImport{Name: "new", SourceURL: model.NewSecret(source.URL())})
	if !strings.HasPrefix(record.Source.Version, "9.6.") {
		t.Errorf("the source is %s", record.Source.Version)
	}
	const rows = "select (select count(*) from only parent) || ' ' || (select count(*) from child) || ' ' || (select sum(count) from summed) || ' ' || nextval('parent_id_seq') || ' ' || convert_from(lo_get(4711), 'UTF8')"
	if got := answer[string](t, c, rows); got != "500 100 600 601 large" {
		t.Errorf("read %s", got)
	}
}

// A source that is newer than every installed pg_dump is refused with the name of the package to install. So is every
// import if pg_dump is older than the new databases.
func TestImportFromANewerMajor(t *testing.T) {
	t.Parallel()
	older, newer := anotherMajor(t)
	newer.Dir = serverOnly(t, newer)
	cfg := testConfig(t, newDataDir(t))
	cfg.Search = binaries.Search{Explicit: newer.Dir, Installed: func() []string { return []string{older.Dir} }}
	there := startEngineOn(t, cfg)
	_, c := there.createDatabase(t, "source")
	run(t, c, "create table t as select 1 as n")
	here := startEngine(t)
	record := here.awaitImport(t, here.beginImport(t, imports.NewImport{Name: "shop", SourceURL: model.NewSecret(c.URL())}).ID)
	want := fmt.Sprintf("postgresql-client-%d", newer.Major)
	if record.Status != model.ImportFailed || !strings.Contains(record.Error, want) {
		t.Errorf("a newer source: %s: %s", record.Status, record.Error)
	}
	_, err := there.Imports.Create(t.Context(), there.call(model.ActionImportCreate), imports.NewImport{
		Project: there.project, Name: "shop", SourceURL: model.NewSecret(c.URL()),
	})
	if model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), want) {
		t.Errorf("with an older pg_dump: %v", err)
	}
}

// serverOnly returns a directory with the server of bin and without its client programs.
func serverOnly(t *testing.T, bin binaries.Set) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"initdb", "pg_ctl", "postgres"} {
		if err := os.Symlink(bin.Tool(name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// An import warns of what only the source has if its major version is newer than the copy's, whatever the default is.
func TestImportWarnsOfANewerSource(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	cfg.Search = binaries.Search{NoFetch: true, Explicit: majorOf(t, 16).Dir, Installed: func() []string { return []string{majorOf(t, 18).Dir} }}
	a := startEngineOn(t, cfg)
	_, c, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewDatabase{Project: a.project, Name: "source", Version: "18"})
	if err != nil {
		t.Fatal(err)
	}
	run(t, c, "create table t as select 1 as n")
	for version, warns := range map[string]bool{"18": false, "16": true} {
		record := a.awaitImport(t, a.beginImport(t, imports.NewImport{Name: "to" + version, SourceURL: model.NewSecret(c.URL()), Version: version}).ID)
		warned := slices.ContainsFunc(record.Log, func(l model.ImportLine) bool { return strings.Contains(l.Message, "what only the newer one has") })
		if record.Status != model.ImportCompleted || warned != warns {
			t.Errorf("into %s: %s %s, %+v", version, record.Status, record.Error, record.Log)
		}
	}
}

// Major versions between the oldest that can be copied and the oldest that runs here are followed and cut over. 13
// is left out, between two that are tried.
func TestImportFollowsOlderMajors(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	a := startMajors(t)
	for _, version := range []embeddedpostgres.PostgresVersion{
		embeddedpostgres.V10, embeddedpostgres.V11, embeddedpostgres.V12, embeddedpostgres.V14,
	} {
		major, _, _ := strings.Cut(string(version), ".")
		t.Run(major, func(t *testing.T) {
			if version != embeddedpostgres.V10 && version != embeddedpostgres.V14 {
				testenv.All(t)
			}
			source := older(t, version)
			for _, sql := range []string{
				"create table customers (id int generated by default as identity primary key, name text)",
				"insert into customers (name) select 'customer ' || n from generate_series(1, 1000) n",
				"create table days (day date, n int) partition by range (day)",
				"create table days1 partition of days for values from ('2026-01-01') to ('2026-07-01')",
				"create table days2 partition of days for values from ('2026-07-01') to ('2027-01-01')",
				"alter table days1 replica identity full", "alter table days2 replica identity full",
				"insert into days select '2026-01-01'::date + n, n from generate_series(0, 300) n",
				"create materialized view totals as select count(*) from customers",
				"select lo_from_bytea(4711, 'large')",
				"create publication everything for all tables",
			} {
				run(t, source, sql)
			}
			record := a.beginImport(t, imports.NewImport{
				Name: "from" + major, SourceURL: model.NewSecret(source.URL()), Follow: true, Publication: "everything", Version: "18",
			})
			record = a.awaitFollowing(t, record.ID)
			for _, sql := range []string{
				"insert into customers (name) select 'later ' || n from generate_series(1, 100) n", "delete from customers where id <= 10",
				"update days set n = -1 where day < '2026-01-03'", "insert into days values ('2026-12-31', 7)",
			} {
				run(t, source, sql)
			}
			record, err := a.cutOver(t, record.ID)
			if err != nil {
				t.Fatalf("%v %+v", err, a.importNow(t, record.ID))
			}
			for _, flaw := range record.Errors {
				if flaw.Object != "LARGE OBJECTS" {
					t.Errorf("not as in the source: %s: %s", flaw.Object, flaw.Message)
				}
			}
			c := a.connectionOf(t, record.Database)
			const content = `select concat_ws(' ', (select count(*) from customers), (select sum(id) from customers), (select count(*) from days), (select sum(n) from days))`
			if got, want := answer[string](t, c, content), answer[string](t, source, content); got != want {
				t.Errorf("the new database has %s, the source %s", got, want)
			}
			if got := answer[string](t, c, "select nextval('customers_id_seq') || convert_from(lo_get(4711), 'UTF8')"); got != "1101large" {
				t.Errorf("the sequence and the large object: %s", got)
			}
			if n := answer[int](t, source, "select count(*) from pg_replication_slots"); n != 0 {
				t.Errorf("%d slots remain", n)
			}
			t.Logf("%s: nobody could write for %v", record.Source.Version, record.Follow.Pause)
		})
	}
	a.awaitIdle(t)
	a.checkTidy(t)
}
