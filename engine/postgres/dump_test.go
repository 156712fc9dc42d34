package postgres_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// Without privileges, a dump that the owner makes names nothing of the appliance's
// and can be restored anywhere. With privileges, it names only the read-only role.
func TestOwnersDumpIsPlain(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	allowed(t, d.Owner(t), "create table kept (n int)")
	dump := func(options ...string) []byte {
		cmd := exec.CommandContext(t.Context(), d.Spec.Bin.Tool("pg_dump"), append(options, "--dbname", ofPrograms(d.URL(d.Tenant.Owner, d.Tenant.OwnerPassword)))...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return out
	}
	for line := range strings.Lines(string(dump("--no-owner"))) {
		if (strings.Contains(line, "GRANT") || strings.Contains(line, "REVOKE")) && !strings.HasSuffix(line, " TO app_readonly;\n") {
			t.Errorf("in the dump with privileges: %s", line)
		}
	}
	out := dump("--no-owner", "--no-acl")
	if !strings.Contains(string(out), "CREATE TABLE public.kept") {
		t.Errorf("the table is not in the dump: %s", out)
	}
	for _, word := range []string{"GRANT", "REVOKE", "pg_catalog.lo_", "readonly", "holdfast"} {
		if strings.Contains(string(out), word) {
			t.Errorf("%s is in the dump: %s", word, out)
		}
	}
}

// The appliance's dump contains what row-level security hides from the owner, runs
// none of the tenant's functions with rights the tenant lacks, and is not cut off
// by the settings of its database.
func TestDump(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	owner := d.Owner(t)
	allowed(t, owner,
		"create table hidden (n int)", "insert into hidden select generate_series(1, 3)",
		"alter table hidden enable row level security", "alter table hidden force row level security",
		"select lo_from_bytea(0, 'kept')",
		"create table witness (who text)",
		`create function tells() returns int language plpgsql as $$ begin
			insert into witness select session_user; return 1; exception when others then return 1; end $$`,
		"create view asks as select tells()",
		"create materialized view answers as select 1 as n",
		"alter database app set statement_timeout = '1ms'", "alter database app set role = 'app'",
		"alter database app set search_path = 'public'", "alter database app set local_preload_libraries = 'nothing'",
		"alter database app set idle_in_transaction_session_timeout = '1ms'")
	file := filepath.Join(t.TempDir(), "dump")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := d.Supervisor.Dump(t.Context(), d.Spec.ID, d.Spec.Bin.Tool("pg_dump"), "app", time.Minute, out); err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), d.Spec.Bin.Tool("pg_restore"), "--file=-", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, want := range []string{"\n1\n2\n3\n", "FORCE ROW LEVEL SECURITY", "lowrite", "CREATE VIEW public.asks"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in the dump: %s", want, text)
		}
	}
	var seen int
	if err := d.Superuser(t, "app").QueryRow(t.Context(), "select count(*) from public.witness").Scan(&seen); err != nil || seen != 0 {
		t.Errorf("the dump ran the tenant's function: %d, %v", seen, err)
	}
	if err := d.Supervisor.Dump(t.Context(), d.Spec.ID, d.Spec.Bin.Tool("pg_dump"), "missing", time.Minute, out); err == nil ||
		!strings.Contains(err.Error(), "missing") || strings.Contains(err.Error(), "password file") {
		t.Errorf("a dump of a database that is not there: %v", err)
	}
}

// A session that locks a view delays a dump for as long as it may and no longer.
func TestDumpIsNotHeldUp(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	allowed(t, d.Owner(t), "create table orders (id int)", "create view v as select id from orders",
		"begin", "alter view v rename to w")
	err := d.Supervisor.Dump(within(t, time.Minute), d.Spec.ID, d.Spec.Bin.Tool("pg_dump"), "app", time.Second, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "held a lock") {
		t.Errorf("while the view is held: %v", err)
	}
	super := d.Superuser(t, "postgres")
	testenv.Within(t, 20*time.Second, "the end of the dumper's sessions", func() bool {
		var left int
		err := super.QueryRow(t.Context(), "select count(*) from pg_stat_activity where usename = 'holdfast_dump'").Scan(&left)
		return err == nil && left == 0
	})
}

// Nor does an owner that blocks the start of every session in its database delay a
// dump for longer, and the dump leaves nothing in the server.
func TestDumpIsNotHeldUpAtItsBeginning(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	super, owner := d.Superuser(t, "postgres"), d.Owner(t)
	allowed(t, d.Owner(t), "begin", "select count(*) from pg_class")
	full := make(chan error, 1)
	go func() {
		_, err := owner.Exec(t.Context(), "vacuum full pg_class")
		full <- err
	}()
	waiting := func(want int) func() bool {
		return func() bool {
			var n int
			err := super.QueryRow(t.Context(), "select count(*) from pg_locks where not granted").Scan(&n)
			return err == nil && n == want
		}
	}
	testenv.Within(t, 20*time.Second, "VACUUM FULL waits", waiting(1))
	err := d.Supervisor.Dump(within(t, time.Minute), d.Spec.ID, d.Spec.Bin.Tool("pg_dump"), "app", time.Second, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "held a lock") {
		t.Errorf("while nobody can begin a session: %v", err)
	}
	testenv.Within(t, 20*time.Second, "the end of the dumper's session", waiting(1))
	allowed(t, super, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'")
	<-full
}

// The dumper cannot log in outside the private socket, and can only read through
// it.
func TestDumperIsNoWayIn(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	if conn, err := pgx.Connect(t.Context(), d.URL("holdfast_dump", d.Tenant.OwnerPassword)); err == nil {
		_ = conn.Close(t.Context())
		t.Error("the dumper may connect over TCP")
	}
	refused(t, d.Owner(t), "42501 0A000 42704", []string{
		"set role holdfast_dump", "grant holdfast_dump to app", "alter role holdfast_dump password 'x'",
		"alter role holdfast_dump set search_path = public", "drop role holdfast_dump", "reassign owned by holdfast_dump to app",
	})
}
