package postgres_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// A hundred logins that never complete do not lock out other clients, even if each
// connects again as soon as it is rejected.
func TestHalfOpenLoginsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Logins = 120 })
	d.Tenant.Connections = d.Spec.Config.Sessions(d.Spec.Bin)
	provisioned(t, d)
	before := len(processesBelow(t, filepath.Dir(d.Spec.Dir)))
	flood(t, d, 100, map[string]string{"user": "app", "database": "app"})
	testenv.Within(t, 30*time.Second, "a hundred half-open logins", func() bool {
		return len(processesBelow(t, filepath.Dir(d.Spec.Dir))) >= before+100
	})
	if err := manyLogins(t, d.URL("app", d.Tenant.OwnerPassword), 32); err != nil {
		t.Errorf("the owner: %v", err)
	}
	conn, err := d.Supervisor.Connect(within(t, 5*time.Second), d.Spec.ID, "postgres")
	if err != nil {
		t.Fatalf("the appliance: %v", err)
	}
	_ = conn.Close(t.Context())
}

// manyLogins opens n sessions concurrently, which all stay open until the last is
// open.
func manyLogins(t *testing.T, url string, n int) error {
	t.Helper()
	errs := make([]error, n)
	var open, all sync.WaitGroup
	open.Add(n)
	for i := range n {
		all.Go(func() {
			conn, err := pgx.Connect(t.Context(), url)
			open.Done()
			if errs[i] = err; err == nil {
				open.Wait()
				_ = conn.Close(context.WithoutCancel(t.Context()))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
