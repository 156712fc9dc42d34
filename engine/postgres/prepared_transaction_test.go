package postgres_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// Roles that only read cannot hold up others for longer than in a session.
func TestEndReadersPrepared(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = map[string]string{"max_prepared_transactions": "5"} })
	owner, super := d.Owner(t), d.Superuser(t, "postgres")
	allowed(t, owner, "create table held (n int)", "begin", "insert into held values (1)", "prepare transaction 'the owner''s'")
	allowed(t, d.ReadOnly(t), "begin", "select * from held", "prepare transaction 'the reader''s'")
	read, write := d.AddRole(t, model.AccessRead), d.AddRole(t, model.AccessWrite)
	allowed(t, read.Connect(t), "begin", "select * from held", "prepare transaction 'a client''s that reads'")
	allowed(t, write.Connect(t), "begin", "insert into held values (2)", "prepare transaction 'a client''s that writes'")
	for _, tt := range []struct {
		patience time.Duration
		left     []string
	}{
		{time.Hour, []string{"a client's that reads", "a client's that writes", "the owner's", "the reader's"}},
		{0, []string{"a client's that writes", "the owner's"}},
	} {
		if err := d.Tenant.EndReadersPrepared(within(t, 10*time.Second), super, tt.patience); err != nil {
			t.Fatal(err)
		}
		rows, _ := super.Query(t.Context(), "select gid from pg_prepared_xacts order by 1")
		if left, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || !slices.Equal(left, tt.left) {
			t.Errorf("after %s: %q, not %q; %v", tt.patience, left, tt.left, err)
		}
	}
}

// A server starts with the transactions that are prepared in its directory, also where the settings have no place for them.
func TestStartWithPreparedTransactions(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = map[string]string{"max_prepared_transactions": "5"} })
	allowed(t, d.Owner(t), "begin", "create table one (n int)", "prepare transaction 'one'", "begin", "create table two (n int)", "prepare transaction 'two'")
	d.Spec.Config.Settings = nil
	if err := d.Supervisor.Stop(t.Context(), d.Spec.ID); err != nil {
		t.Fatal(err)
	}
	if err := d.Supervisor.Start(t.Context(), d.Spec); err != nil {
		t.Fatal(err)
	}
	allowed(t, d.Owner(t), "commit prepared 'one'", "rollback prepared 'two'", "select * from one")
}

// So does one that crashed with such transactions in its WAL alone, after the settings were lowered without a restart.
func TestCrashWithPreparedTransactions(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = map[string]string{"max_prepared_transactions": "5"} })
	owner := d.Owner(t)
	allowed(t, owner, "create table kept (n int)", "begin", "insert into kept values (1)", "prepare transaction 'kept'")
	if err := d.Supervisor.Tune(t.Context(), d.Spec.ID, func(c *postgres.Config) { c.Settings = nil }); err != nil {
		t.Fatal(err)
	}
	_, _, pid := d.Supervisor.Status(d.Spec.ID)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, 20*time.Second, "back after kill -9", running(d.Supervisor, d.Spec.ID, pid))
	allowed(t, d.Owner(t), "commit prepared 'kept'")
	if err := d.Supervisor.Restart(t.Context(), d.Spec.ID, time.Minute); err != nil {
		t.Fatal(err)
	}
	var places string
	if err := d.Owner(t).QueryRow(t.Context(), "show max_prepared_transactions").Scan(&places); err != nil || places != "0" {
		t.Errorf("after a restart: %s places, %v", places, err)
	}
}

// A rename that a prepared transaction prevents leaves the database open that has the next name.
func TestProvisionRefusesToRenamePrepared(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = map[string]string{"max_prepared_transactions": "5"} })
	super := d.Superuser(t, "postgres")
	if err := postgres.CreateBeside(t.Context(), super, "tests"); err != nil {
		t.Fatal(err)
	}
	allowed(t, d.Owner(t), "create table t (n int)", "begin", "insert into t values (1)", "prepare transaction 'held'")
	next := d.Tenant
	next.Database = "tests"
	err := postgres.Provision(within(t, 10*time.Second), super, next)
	if model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "'held' in the database app") {
		t.Errorf("renamed: %v", err)
	}
	var open bool
	if err := super.QueryRow(t.Context(), "select datallowconn from pg_database where datname = 'tests'").Scan(&open); err != nil || !open {
		t.Errorf("the other database is open: %v, %v", open, err)
	}
	if err := postgres.Provision(within(t, 10*time.Second), super, d.Tenant); err != nil { // as what takes the rename back
		t.Error(err)
	}
	allowed(t, d.Owner(t), "commit prepared 'held'")
	if err := postgres.Provision(within(t, 10*time.Second), super, next); err != nil {
		t.Error(err)
	}
}

// A table of a prepared transaction, which may come back with a restore, keeps no role from being made; the role may read it
// once it is committed.
func TestRolesBesidePreparedTables(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = map[string]string{"max_prepared_transactions": "5"} })
	allowed(t, d.Owner(t), "create table shown (n int)", "create schema old", "begin", "create table hidden (n serial)", "create schema s", "create table s.hidden (n int)",
		"create table old.hidden (n int)", "prepare transaction 'hides'", "begin", "create table never (n int)", "prepare transaction 'goes'")
	role := d.AddRole(t, model.AccessRead)
	allowed(t, role.Connect(t), "select * from shown")
	allowed(t, d.Owner(t), "rollback prepared 'goes'")
	provisioned(t, d)
	allowed(t, d.Owner(t), "commit prepared 'hides'", "create table later (n int)")
	provisioned(t, d)
	allowed(t, role.Connect(t), "select * from shown, hidden, s.hidden, old.hidden, later", "select last_value from hidden_n_seq")
	allowed(t, d.Owner(t), "revoke select on shown from holdfast_read")
	provisioned(t, d)
	refused(t, role.Connect(t), noPrivilege, []string{"select * from shown"})
	var mark string
	if err := d.Superuser(t, "postgres").QueryRow(t.Context(), "select shobj_description('holdfast_read'::regrole, 'pg_authid')").Scan(&mark); err != nil || mark != "holdfast: group of roles" {
		t.Errorf("the group's comment in the end: %q, %v", mark, err)
	}
}

// What the owner revokes while a prepared transaction hides a table stays revoked, then and once it shows.
func TestRevokedBesidePreparedTables(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = map[string]string{"max_prepared_transactions": "5"} })
	allowed(t, d.Owner(t), "create schema closed", "create table closed.open (n int)", "create table payroll (n int)", "begin", "create table hidden (n int)",
		"create table closed.hidden (n int)", "prepare transaction 'hides'")
	role := d.AddRole(t, model.AccessRead)
	allowed(t, d.Owner(t), "revoke select on payroll from holdfast_read", "revoke usage on schema closed from holdfast_read",
		"alter default privileges revoke select on tables from holdfast_read", "create table later (n int)")
	closed := func() {
		t.Helper()
		for _, table := range []string{"payroll", "closed.open", "closed.hidden", "later"} {
			refused(t, role.Connect(t), noPrivilege, []string{"select * from " + table})
		}
	}
	provisioned(t, d)
	allowed(t, d.AddNamedRole(t, "another", model.AccessRead).Connect(t), "select 1")
	closed()
	allowed(t, d.Owner(t), "commit prepared 'hides'")
	provisioned(t, d)
	closed()
	allowed(t, role.Connect(t), "select * from hidden")
	allowed(t, d.Owner(t), "revoke select on hidden from holdfast_read")
	provisioned(t, d)
	refused(t, role.Connect(t), noPrivilege, []string{"select * from hidden"})
}

// A table that shows late and is locked again, by another prepared transaction, keeps no server from being provisioned.
func TestLateTableLocked(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = map[string]string{"max_prepared_transactions": "5"} })
	allowed(t, d.Owner(t), "begin", "create table hidden (n int)", "prepare transaction 'hides'")
	role := d.AddRole(t, model.AccessWrite)
	allowed(t, d.Owner(t), "commit prepared 'hides'", "begin", "alter table hidden add m int", "prepare transaction 'locks'")
	provisioned(t, d)
	allowed(t, d.Owner(t), "commit prepared 'locks'")
	provisioned(t, d)
	allowed(t, role.Connect(t), "insert into hidden values (1, 2)")
}
