package cli_test

import (
	"context"
	"net/url"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestKillDuringExportBeside kills the appliance while pg_dump reads a database beside the main one. The next start makes the
// export, and what is restored from it is what was there.
func TestKillDuringExportBeside(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	m.start()
	db := m.createDatabase("shop")
	var role wire.DatabaseRoleSecret
	m.must("POST", "/databases/"+db.ID+"/roles", map[string]any{"name": "tests", "access": "create"}, &role)
	in := func(name string) string {
		u, err := url.Parse(role.Connection.ConnectionURL)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = "/" + name
		return u.String()
	}
	fill(t, in("tests"))
	query(t, in("tests"), "create table held (n int)")
	before := query(t, in("tests"), checksum)
	holder, err := pgx.Connect(t.Context(), in("tests"))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.WithoutCancel(t.Context()))
	for _, sql := range []string{"begin", "lock table held in access exclusive mode"} {
		if _, err := holder.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var x wire.Export
	export := func() wire.Export {
		m.must("GET", "/databases/"+db.ID+"/export?dbname=tests", nil, &x)
		return x
	}
	m.must("POST", "/databases/"+db.ID+"/export", map[string]any{"dbname": "tests"}, &x)
	first := x.ID
	testenv.Eventually(t, "a dump that waits for the lock", func() bool {
		return export().Status == wire.ExportRunning &&
			query(t, in("shop"), "select count(*) from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.usename = 'holdfast_dump'") == "1"
	})
	m.kill()
	m.start()
	m.awaitAvailable(db.ID)
	if _, err := holder.Exec(t.Context(), "rollback"); err != nil {
		t.Logf("the session that held the lock: %v", err) // it may have ended with the appliance
	}
	testenv.Eventually(t, "the export after the kill", func() bool { return export().Status == wire.ExportReady })
	if x.ID != first || x.DBName == nil || *x.DBName != "tests" {
		t.Errorf("%+v", x)
	}
	query(t, in("shop"), "create database restored")
	restore := exec.CommandContext(t.Context(), "sh", "-c", `curl -sS --fail "$1" | pg_restore --no-owner --no-acl --exit-on-error --dbname "$2"`, "sh", *x.DownloadURL, in("restored"))
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if after := query(t, in("restored"), checksum); after != before {
		t.Errorf("restored are %s, not %s", after, before)
	}
	if got := query(t, in("tests"), checksum); got != before {
		t.Errorf("the database has %s, not %s", got, before)
	}
}
