package cli_test

import (
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/server/api/wire"
)

// TestRecoverRoles brings an appliance back from a copy in a directory: the roles of its databases log in with their
// passwords, and those that were deleted do not.
func TestRecoverRoles(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	c := m.prepareCopy(t)
	m.start(c.serveFlags()...)
	shop := m.createDatabase("shop")
	query(t, m.connectionURL(shop.ID), "create table t as select 7 as n")
	m.backup(shop.ID)
	role := func(name, access string) string {
		var made wire.DatabaseRoleSecret
		m.must("POST", "/databases/"+shop.ID+"/roles", map[string]any{"name": name, "access": access}, &made)
		return made.Connection.ConnectionURL
	}
	worker, gone := role("worker", "write"), role("gone", "owner")
	query(t, gone, "create table made as select 8 as n")
	m.must("DELETE", "/databases/"+shop.ID+"/roles/gone", nil, nil)
	query(t, worker, "insert into made values (9)")
	m.awaitCopied()
	m.killAll()

	fresh := m.elsewhere()
	fresh.recoverFrom(c)
	fresh.awaitAvailable(shop.ID)
	as := func(old string) string {
		u, err := url.Parse(fresh.connectionURL(shop.ID))
		if err != nil {
			t.Fatal(err)
		}
		before, err := url.Parse(old)
		if err != nil {
			t.Fatal(err)
		}
		u.User = before.User
		return u.String()
	}
	query(t, as(worker), "insert into made values (10)")
	if got := query(t, as(worker), "select sum(n) from made"); got != "27" {
		t.Errorf("the rows sum up to %s", got)
	}
	if conn, err := pgx.Connect(t.Context(), as(gone)); err == nil {
		t.Error("a deleted role logs in")
		conn.Close(t.Context())
	}
}
