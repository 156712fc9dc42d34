package postgres_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
)

// lockers call the functions by which any role could block another, or use up
// transaction numbers, without a privilege.
var lockers = []string{
	"select pg_advisory_lock(1)", "select pg_advisory_lock(1, 2)", "select pg_advisory_lock_shared(1)", "select pg_advisory_lock_shared(1, 2)",
	"select pg_try_advisory_lock(1)", "select pg_try_advisory_lock(1, 2)", "select pg_try_advisory_lock_shared(1)",
	"select pg_advisory_xact_lock(1)", "select pg_advisory_xact_lock_shared(1)", "select pg_try_advisory_xact_lock(1)", "select pg_try_advisory_xact_lock_shared(1, 2)",
	"select txid_current()", "select pg_current_xact_id()",
}

// The read-only role cannot take an advisory lock that the owner's migrations wait
// for.
func TestReadOnlyTakesNoAdvisoryLock(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	for _, r := range readers(t, d) {
		t.Run(r.name, func(t *testing.T) { takesNoAdvisoryLock(t, d, r) })
	}
}

func takesNoAdvisoryLock(t *testing.T, d *postgrestest.Database, r reader) {
	takesNone := func(t *testing.T) {
		ro := r.connect(t)
		refused(t, ro, noPrivilege, lockers)
		allowed(t, ro, "set default_transaction_read_only = off")
		refused(t, ro, noPrivilege, lockers)
		allowed(t, ro, "select pg_advisory_unlock_all()", "discard all")
		owner := d.Owner(t)
		allowed(t, owner, lockers...)
		allowed(t, owner, "select pg_advisory_unlock_all()", "select lo_unlink(lo_create(0))")
	}
	t.Run("new", func(t *testing.T) {
		// A prepared database has the privileges: its creation opens no session in the database.
		holder := d.Superuser(t, "app")
		allowed(t, holder, "begin", "lock table pg_class in access exclusive mode")
		if err := postgres.Provision(within(t, 5*time.Second), d.Superuser(t, "postgres"), d.Tenant); err != nil {
			t.Error(err)
		}
		allowed(t, holder, "rollback")
		takesNone(t)
	})
	t.Run("of an older version", func(t *testing.T) {
		allowed(t, d.Superuser(t, "app"), "grant execute on function pg_advisory_lock(bigint) to public", "revoke execute on function pg_advisory_lock(bigint) from app")
		allowed(t, d.ReadOnly(t), "select pg_advisory_lock(1)", "select pg_advisory_unlock(1)")
		provisioned(t, d)
		takesNone(t)
	})
	t.Run("after drop owned", func(t *testing.T) {
		allowed(t, d.Owner(t), "drop owned by app")
		takesNone(t)
	})
	t.Run("dump", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), d.Spec.Bin.Tool("pg_dump"), "--dbname", ofPrograms(d.URL("app", d.Tenant.OwnerPassword))).Output()
		if err != nil || strings.Contains(string(out), "advisory") || strings.Contains(string(out), "pg_catalog.txid") {
			t.Errorf("the owner's dump names PostgreSQL's own functions: %v\n%s", err, out)
		}
	})
}

func provisioned(t *testing.T, d *postgrestest.Database) {
	t.Helper()
	if err := postgres.Provision(t.Context(), d.Superuser(t, "postgres"), d.Tenant); err != nil {
		t.Fatal(err)
	}
}

// What a session of the read-only role spills to disk is bounded, whatever it sets.
func TestReadOnlyTemporaryFilesAreBounded(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = map[string]string{"temp_file_limit": "160MB"} })
	const spill = "select count(*) from (select from generate_series(1, %d) g order by repeat(g::text, 20)) s"
	for _, r := range readers(t, d) {
		for _, attempt := range [][]string{
			{},
			{"set work_mem = '64kB'"},
			{"set default_transaction_read_only = off", "alter role " + r.name + " reset all"},
			{"set default_transaction_read_only = off", "alter role " + r.name + " in database app reset all"},
		} {
			allowed(t, r.connect(t), attempt...)
			ro := r.connect(t)
			refused(t, ro, noPrivilege, []string{"set temp_file_limit = -1"})
			refused(t, ro, "53400", []string{fmt.Sprintf(spill, 300_000)})
			allowed(t, ro, fmt.Sprintf(spill, 30_000))
		}
	}
	allowed(t, d.Owner(t), fmt.Sprintf(spill, 300_000))
	refused(t, d.Owner(t), noPrivilege, []string{"set temp_file_limit = -1", "alter role app set temp_file_limit = -1", "alter database app set temp_file_limit = -1"})
	refused(t, d.Owner(t), "53400", []string{fmt.Sprintf(spill, 2_000_000)})
}

// The owner has connection slots, however many sessions the read-only role opens.
func TestReadOnlyLeavesConnections(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.Config.Settings = map[string]string{"max_connections": "20"}
		s.Config.Logins = 30
	})
	d.Tenant.Connections = d.Spec.Config.Sessions(d.Spec.Bin)
	if d.Tenant.Connections != 15 {
		t.Fatalf("%d sessions", d.Tenant.Connections)
	}
	provisioned(t, d)
	if n := openUntilRefused(t, d.URL("app_readonly", d.Tenant.ReadOnlyPassword)); n != 6 {
		t.Errorf("the reader got %d sessions", n)
	}
	if n := openUntilRefused(t, d.URL("app", d.Tenant.OwnerPassword)); n != 15 {
		t.Errorf("the owner got %d sessions", n)
	}
}

func openUntilRefused(t *testing.T, url string) int {
	t.Helper()
	for n := range 100 {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			if sqlState(err) != "53300" {
				t.Errorf("session %d: %v", n, err)
			}
			return n
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // returns once the server has ended the session
	}
	return 100
}

// Time limits end forgotten sessions of the read-only role.
func TestReadOnlyHasTimeLimits(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	for _, r := range readers(t, d) {
		hasTimeLimits(t, r)
	}
}

func hasTimeLimits(t *testing.T, r reader) {
	var statement, idle string
	err := r.connect(t).QueryRow(t.Context(), "select current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')").Scan(&statement, &idle)
	if err != nil || statement != "1h" || idle != "10min" {
		t.Errorf("%s: statements %s, idle %s, %v", r.name, statement, idle, err)
	}
}
