package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
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
