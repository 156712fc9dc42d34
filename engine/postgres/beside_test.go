package postgres_test

import (
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// The limit that is set while a role becomes the first member of the group counts that member.
func TestLimitCreationWaitsForRoles(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	role := d.AddRole(t, model.AccessCreate)
	changing, limiting := d.Superuser(t, "postgres"), d.Superuser(t, "postgres")
	exec := func(sql string) {
		t.Helper()
		if _, err := changing.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	creates := func() (may bool) {
		t.Helper()
		if err := changing.QueryRow(t.Context(), "select rolcreatedb from pg_roles where rolname = 'holdfast_create'").Scan(&may); err != nil {
			t.Fatal(err)
		}
		return may
	}
	exec("revoke holdfast_create from " + role.Name)
	if err := postgres.LimitCreation(t.Context(), limiting); err != nil || creates() {
		t.Fatalf("without members it creates databases: %v", err)
	}
	exec("begin")
	exec("lock table pg_authid in share row exclusive mode")
	exec("grant holdfast_create to " + role.Name)
	exec("alter role holdfast_create createdb")
	limited := make(chan error, 1)
	go func() { limited <- postgres.LimitCreation(t.Context(), limiting) }()
	testenv.Eventually(t, "the wait for the lock", func() (waits bool) {
		err := changing.QueryRow(t.Context(), "select exists (select from pg_locks where not granted)").Scan(&waits)
		return err == nil && waits
	})
	exec("commit")
	if err := <-limited; err != nil || !creates() {
		t.Errorf("with a member it creates none: %v", err)
	}
}
