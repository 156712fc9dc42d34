package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/advice"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// trickyNames are names of databases that statements, connection strings, options, paths and formats may be misled by.
func trickyNames() []string {
	return []string{
		"Upper Case", "line\nbreak", `it's "quoted"`, `x"; drop role app; --`, "a$$b", "back\\slash\ttab", "host=192.0.2.1 dbname=app", "postgresql://192.0.2.1/app",
		"../../etc/passwd", "--version", "%s %d", "all", "replication", "$1", strings.Repeat("ä", 31) + "b",
	}
}

// dumpOf returns the appliance's dump of a database, as SQL.
func dumpOf(t *testing.T, d *postgrestest.Database, name string) (string, error) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "dump"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := d.Supervisor.Dump(t.Context(), d.Spec.ID, d.Spec.Bin.Tool("pg_dump"), name, 10*time.Second, file); err != nil {
		return "", err
	}
	text, err := exec.CommandContext(t.Context(), d.Spec.Bin.Tool("pg_restore"), "--file=-", file.Name()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return string(text), nil
}

// connectTo opens the appliance's session in a database that a client names.
func connectTo(t *testing.T, d *postgrestest.Database, name string) *pgx.Conn {
	t.Helper()
	conn, err := d.Supervisor.ConnectTo(t.Context(), d.Spec.ID, name)
	if err != nil {
		t.Fatalf("%q: %v", name, err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// asRole runs statements in a session of the role in a database.
func asRole(t *testing.T, r postgrestest.ClientRole, database string, statements ...string) {
	t.Helper()
	conn := r.ConnectTo(t, database)
	allowed(t, conn, statements...)
	_ = conn.Close(t.Context())
}

// look reads everything that the appliance shows of a database, and dumps it.
func look(t *testing.T, d *postgrestest.Database, name string) (tables []postgres.Table, dump string) {
	t.Helper()
	conn := connectTo(t, d, name)
	defer conn.Close(t.Context())
	tables, err := postgres.Tables(t.Context(), conn)
	if err != nil {
		t.Errorf("%q: %v", name, err)
	}
	if _, err := advice.TableSizes(t.Context(), conn); err != nil {
		t.Errorf("%q: %v", name, err)
	}
	if _, err := advice.IndexSizes(t.Context(), conn); err != nil {
		t.Errorf("%q: %v", name, err)
	}
	super := d.Superuser(t, "postgres")
	defer super.Close(t.Context())
	if err := postgres.AdmitDumper(t.Context(), super, name); err != nil {
		t.Errorf("%q: %v", name, err)
	}
	if dump, err = dumpOf(t, d, name); err != nil {
		t.Errorf("%q: %v", name, err)
	}
	return tables, dump
}

// Whatever a database beside the tenant's is called, it and no other is inspected and dumped, also where PUBLIC may not connect.
func TestTrickyNamesOfDatabases(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		r, super := creator(t, d), d.Superuser(t, "postgres")
		allowed(t, d.Owner(t), "create table secret as select 1 as n")
		for n, name := range trickyNames() {
			quoted := pgx.Identifier{name}.Sanitize()
			asRole(t, r, "app", "create database "+quoted+" strategy file_copy")
			asRole(t, r, name, fmt.Sprintf("create table kept as select %d as n", 1000+n), "revoke all on database "+quoted+" from public")
			tables, dump := look(t, d, name)
			if len(tables) != 1 || tables[0].Name != "kept" || !strings.Contains(dump, fmt.Sprintf("\n%d\n", 1000+n)) || strings.Contains(dump, "secret") {
				t.Errorf("%q: %+v, %s", name, tables, dump)
			}
		}
		found, err := postgres.Databases(t.Context(), super, "app")
		var names []string
		for i, f := range found {
			names = append(names, f.Name)
			if f.Main != (i == 0) || f.SizeBytes < 5<<20 || f.Closed || f.Encoding != map[bool]string{true: "SQL_ASCII", false: "UTF8"}[f.Name == "theirs"] {
				t.Errorf("%+v", f)
			}
		}
		want := append(trickyNames(), "mine", "theirs")
		slices.Sort(want)
		if err != nil || names[0] != "app" || !slices.Equal(names[1:], want) {
			t.Errorf("%q, want app and %q, %v", names, want, err)
		}
		absent, err := postgres.AbsentDatabases(t.Context(), super, append(trickyNames(), "absent", "postgres", "theirs", "A$$B"))
		slices.Sort(absent)
		if err != nil || !slices.Equal(absent, []string{"A$$B", "absent", "postgres"}) {
			t.Errorf("absent are %q, %v", absent, err)
		}
	})
}

// Names that clients must not use, however they are written, and databases that nobody can connect to.
func TestDatabasesThatClientsCannotName(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		r, super := creator(t, d), d.Superuser(t, "postgres")
		long := strings.Repeat("l", 63)
		// 0xE9 is é in LATIN1.
		allowed(t, r.Connect(t), `create database "`+long+`"`, `create database latin template template0 encoding 'LATIN1' locale_provider libc lc_collate 'C' lc_ctype 'C'`,
			"create database closed", "create database gone", "alter database closed allow_connections false")
		latin := r.ConnectTo(t, "latin")
		allowed(t, latin, "set client_encoding = 'LATIN1'")
		if _, err := latin.PgConn().Exec(t.Context(), "create database \"caf\xe9\" template template0 encoding 'LATIN1' locale_provider libc lc_collate 'C' lc_ctype 'C'").ReadAll(); err != nil {
			t.Fatal(err)
		}
		allowed(t, super, "update pg_database set datconnlimit = -2 where datname = 'gone'")
		for name, want := range map[string]error{
			"": postgres.ErrNoDatabase, "postgres": postgres.ErrNoDatabase, "template0": postgres.ErrNoDatabase, "template1": postgres.ErrNoDatabase, "none": postgres.ErrNoDatabase,
			long + "l": postgres.ErrNoDatabase, "mine\x00": postgres.ErrNoDatabase, "caf\xe9": postgres.ErrNoDatabase, "café": postgres.ErrNoDatabase, "MINE": postgres.ErrNoDatabase,
			"closed": postgres.ErrDatabaseClosed,
		} {
			if _, err := d.Supervisor.ConnectTo(t.Context(), d.Spec.ID, name); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", name, err, want)
			}
			if err := postgres.AdmitDumper(t.Context(), super, name); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", name, err, want)
			}
		}
		if _, err := d.Supervisor.ConnectTo(t.Context(), d.Spec.ID, "gone"); err == nil {
			t.Error("a session in a database whose DROP was interrupted")
		}
		if err := postgres.AdmitDumper(t.Context(), super, "gone"); !errors.Is(err, postgres.ErrNoDatabase) {
			t.Errorf("one whose DROP was interrupted: %v", err)
		}
		found, err := postgres.Databases(t.Context(), super, "app")
		closed := map[string]bool{}
		for _, f := range found {
			closed[f.Name] = f.Closed
		}
		if _, listed := closed["gone"]; err != nil || listed || !closed["closed"] || closed["caf\xe9"] || len(found) != 7 {
			t.Errorf("%+v, %v", found, err)
		}
		var open bool
		if err := super.QueryRow(t.Context(), "select datallowconn from pg_database where datname = 'closed'").Scan(&open); err != nil || open {
			t.Errorf("it was opened, %v", err)
		}
	})
}

// What a role makes in its own database, and what it sets for all sessions there, neither runs with the appliance's rights or its
// dumper's nor keeps them out.
func TestHostileDatabaseBeside(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		r := creator(t, d)
		conn := r.ConnectTo(t, "mine")
		for _, statement := range slices.Concat(trapBase, shadows("public"), []string{"create schema holdfast", "create schema holdfast_dump"}, shadows("holdfast"), shadows("holdfast_dump")) {
			if !strings.HasPrefix(statement, "comment on database") {
				allowed(t, conn, statement)
			}
		}
		allowed(t, conn, "insert into public.orders default values", "create table public.hidden as select 7 as n", "alter table public.hidden enable row level security",
			"alter table public.hidden force row level security", "revoke all on public.hidden from public", "revoke connect on database mine from public",
			"alter default privileges grant execute on functions to public", "analyze public.orders",
			"create table public.busy (n int)", "set role none", "create schema own", "create table own.t as select 8 as n", "set role holdfast_create")
		for _, setting := range []string{
			`search_path = "$user", public, pg_catalog`, "role = 'holdfast_create'", "statement_timeout = 1", "lock_timeout = 1", "idle_session_timeout = 1", "idle_in_transaction_session_timeout = 1",
			"default_transaction_read_only = on", "default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on", "client_encoding = 'SQL_ASCII'", "row_security = off",
			"quote_all_identifiers = on", "transform_null_equals = on", "exit_on_error = on", "datestyle = 'German'", "standard_conforming_strings = off", "local_preload_libraries = 'absent'",
			"check_function_bodies = off", "array_nulls = off", "client_min_messages = debug5", "plan_cache_mode = force_generic_plan", "default_tablespace = 'pg_default'",
		} {
			allowed(t, conn, "alter database mine set "+setting)
		}
		if d.Spec.Bin.Major >= 17 {
			allowed(t, conn, "alter database mine set transaction_timeout = 1", "alter database mine set restrict_nonsystem_relation_kind = 'view'")
		}
		ran := func() (n int) {
			t.Helper()
			super := connectTo(t, d, "mine")
			if err := super.QueryRow(t.Context(), "select last_value + case when is_called then 1 else 0 end from public.ran").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := ran()
		tables, dump := look(t, d, "mine")
		for _, want := range []string{"\n7\n", "\n8\n", "CREATE VIEW public.v "} {
			if !strings.Contains(dump, want) {
				t.Errorf("the dump lacks %q", want)
			}
		}
		if len(tables) < 6 {
			t.Errorf("there are %d tables", len(tables))
		}
		if after := ran(); after != before {
			t.Errorf("the appliance ran what the role has made: %d, then %d", before, after)
		}
		// The traps work.
		super := connectTo(t, d, "mine")
		allowed(t, super, "set search_path = public, pg_catalog")
		if d.Spec.Bin.Major >= 17 {
			allowed(t, super, "set restrict_nonsystem_relation_kind = ''")
		}
		_, _ = postgres.Tables(t.Context(), super)
		if after := ran(); after == before {
			t.Error("the traps spring nothing")
		}
		if found := harm(t, d.Superuser(t, "app")); len(found) > 0 {
			t.Errorf("afterwards: %s", strings.Join(found, "; "))
		}
	})
}

// Locks in a database beside the tenant's hold up who looks at it for a bounded time, and nobody else.
func TestLocksInDatabaseBeside(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		r := creator(t, d)
		holder, full := r.ConnectTo(t, "mine"), r.ConnectTo(t, "mine")
		super := d.Superuser(t, "postgres")
		allowed(t, holder, "create table held (n int)", "create policy p on held using (n > 1)", "begin", "lock table held in access exclusive mode")
		ctx := within(t, time.Minute)
		if _, err := postgres.Tables(ctx, connectTo(t, d, "mine")); !errors.Is(err, postgres.ErrTableBusy) {
			t.Errorf("tables: %v", err)
		}
		dump := func() error {
			return d.Supervisor.Dump(ctx, d.Spec.ID, d.Spec.Bin.Tool("pg_dump"), "mine", time.Second, new(strings.Builder))
		}
		if err := dump(); err == nil || !strings.Contains(err.Error(), "public.held") && !strings.Contains(err.Error(), "held a lock") {
			t.Errorf("the dump: %v", err)
		}
		allowed(t, holder, "rollback", "begin", "select count(*) from pg_class")
		ended := make(chan error, 1)
		go func() {
			_, err := full.Exec(ctx, "vacuum full pg_class")
			ended <- err
		}()
		testenv.Within(t, 20*time.Second, "VACUUM FULL waits", func() bool {
			var n int
			err := super.QueryRow(ctx, "select count(*) from pg_locks where not granted").Scan(&n)
			return err == nil && n == 1
		})
		if conn, err := d.Supervisor.ConnectTo(ctx, d.Spec.ID, "mine"); err == nil {
			t.Error("a session began")
			_ = conn.Close(ctx)
		}
		if err := dump(); err == nil || !strings.Contains(err.Error(), "held a lock") {
			t.Errorf("the dump while nobody can begin a session: %v", err)
		}
		if found, err := postgres.Databases(ctx, super, "app"); err != nil || len(found) != 3 {
			t.Errorf("the list: %+v, %v", found, err)
		}
		if err := postgres.AdmitDumper(ctx, super, "mine"); err != nil {
			t.Error(err)
		}
		allowed(t, holder, "rollback")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		// A transaction that changes the database.
		allowed(t, holder, "revoke connect on database mine from public", "begin", "alter database mine connection limit 7")
		allowed(t, super, "set lock_timeout = 1000")
		if err := postgres.AdmitDumper(ctx, super, "mine"); sqlState(err) != "55P03" {
			t.Errorf("while a transaction changes the database: %v", err)
		}
		allowed(t, holder, "rollback")
		if err := postgres.AdmitDumper(ctx, super, "mine"); err != nil {
			t.Error(err)
		}
		if err := dump(); err != nil {
			t.Error(err)
		}
	})
}

// A closed database whose name ends a string of PL/pgSQL keeps no role from being dropped.
func TestClosedDatabaseWithTrickyName(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	r := d.AddRole(t, model.AccessCreate)
	other := d.AddNamedRole(t, "another", model.AccessCreate)
	for _, name := range trickyNames() {
		quoted := pgx.Identifier{name}.Sanitize()
		asRole(t, r, "app", "create database "+quoted+" strategy file_copy")
		asRole(t, r, name, "set role none", "create schema own")
		asRole(t, other, "app", "alter database "+quoted+" allow_connections false")
	}
	dropRole(t, d, r.Name)
	var left int
	if err := d.Superuser(t, "postgres").QueryRow(t.Context(), "select count(*) from pg_roles where rolname = $1", r.Name).Scan(&left); err != nil || left != 0 {
		t.Errorf("the role is still there: %d, %v", left, err)
	}
}
