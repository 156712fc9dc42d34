package postgrestest

import (
	"crypto/rand"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/postgres"

	"github.com/jackc/pgx/v5"
)

// ClientRole is a role of a throw-away instance beside its owner and its read-only role.
type ClientRole struct {
	postgres.ClientRole
	Password model.Secret
	in       *Database
}

// AddRole makes a role named client_ and its access, and lets clients log in as it.
func (d *Database) AddRole(tb testing.TB, access model.RoleAccess) ClientRole {
	tb.Helper()
	return d.AddNamedRole(tb, "client_"+string(access), access)
}

// AddNamedRole is AddRole with another name.
func (d *Database) AddNamedRole(tb testing.TB, name string, access model.RoleAccess) ClientRole {
	tb.Helper()
	r := ClientRole{ClientRole: postgres.ClientRole{Name: name, Access: access}, Password: model.NewSecret(rand.Text()), in: d}
	var err error
	if r.Verifier, err = postgres.NewVerifier(r.Password); err != nil {
		tb.Fatal(err)
	}
	d.Tenant.Roles = append(d.Tenant.Roles, r.ClientRole)
	d.Spec.HBA.Users = append(d.Spec.HBA.Users, r.Name)
	if access == model.AccessCreate {
		d.Spec.HBA.Creators = append(d.Spec.HBA.Creators, r.Name)
	}
	if err := d.Supervisor.Update(tb.Context(), d.Spec.ID, d.Spec.HBA); err != nil {
		tb.Fatal(err)
	}
	d.provision(tb)
	return r
}

// URL returns the connection URL of the role.
func (r ClientRole) URL() string { return r.in.URL(r.Name, r.Password) }

// Connect opens a session as the role, over TCP with TLS.
func (r ClientRole) Connect(tb testing.TB) *pgx.Conn {
	tb.Helper()
	return r.ConnectTo(tb, r.in.Tenant.Database)
}

// ConnectTo is Connect to another database than the tenant's.
func (r ClientRole) ConnectTo(tb testing.TB, database string) *pgx.Conn {
	tb.Helper()
	config, err := pgx.ParseConfig(r.URL())
	if err != nil {
		tb.Fatal(err)
	}
	config.Database = database
	conn, err := pgx.ConnectConfig(tb.Context(), config)
	return closed(tb, conn, err)
}
