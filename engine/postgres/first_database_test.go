package postgres_test

import (
	"slices"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
)

// The database that was made for a role stays if a transaction that changes it is open, and the role goes without waiting for that.
func TestFirstDatabaseLocked(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	gone, other := d.AddNamedRole(t, "gone", model.AccessCreate), d.AddNamedRole(t, "other", model.AccessCreate)
	super := d.Superuser(t, "postgres")
	if err := postgres.CreateBeside(t.Context(), super, gone.Name); err != nil {
		t.Fatal(err)
	}
	d.Tenant.Roles = slices.DeleteFunc(d.Tenant.Roles, func(r postgres.ClientRole) bool { return r.Name == gone.Name })
	if err := postgres.SetClientRoles(t.Context(), super, d.Tenant); err != nil {
		t.Fatal(err)
	}
	conn := other.Connect(t)
	allowed(t, conn, "begin", "alter database "+gone.Name+" connection limit 7")
	if err := postgres.FollowClientRoles(within(t, 20*time.Second), super, d.Tenant, gone.Name); err != nil {
		t.Fatal(err)
	}
	var role, open bool
	if err := super.QueryRow(t.Context(), "select to_regrole($1) is not null, datallowconn from pg_database where datname = $1", gone.Name).Scan(&role, &open); err != nil || role || !open {
		t.Errorf("its role is left: %v, the database is open: %v, %v", role, open, err)
	}
	allowed(t, conn, "commit")
}
