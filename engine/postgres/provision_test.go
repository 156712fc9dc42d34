package postgres_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
)

func serverLog(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "log", "postgres.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestProvisionRenames(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	super := d.Superuser(t, "postgres")
	owner := d.Owner(t)
	allowed(t, owner, "create table kept (n int)")
	if err := owner.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	secret := model.NewSecret
	for _, next := range []postgres.Tenant{
		{Database: "Shop-1", Owner: "shop", ReadOnly: "shop_readonly"},
		{Database: "Shop-1", Owner: "shop", ReadOnly: "shop_readonly"}, // again: nothing to rename
		{Database: "Shop-1", Owner: "shop_readonly", ReadOnly: "shop"}, // swapped
		{Database: `odd "name'; --`, Owner: `o"wner`, ReadOnly: `r'o`},
		{Database: "select", Owner: "table", ReadOnly: "user"},
		{Database: "app", Owner: "app_readonly", ReadOnly: "app_readonly_ro"},
		{Database: "app", Owner: "app", ReadOnly: "app_readonly"},
	} {
		next.OwnerPassword, next.ReadOnlyPassword = secret("owner-"+next.Owner), secret("reader-"+next.ReadOnly)
		began := time.Now()
		if err := postgres.Provision(t.Context(), super, next); err != nil {
			t.Fatalf("%+v: %v", next, err)
		}
		t.Logf("took %v", time.Since(began))
		var names []string
		err := super.QueryRow(t.Context(), `select array[d.datname::text, o.rolname::text] || array(select rolname::text from pg_roles
			where rolname not in ('holdfast', 'holdfast_dump', o.rolname) and rolname !~ '^pg_') from pg_database d join pg_roles o on o.oid = d.datdba
			where datname not in ('postgres', 'template0', 'template1')`).Scan(&names)
		if want := []string{next.Database, next.Owner, next.ReadOnly}; err != nil || !slices.Equal(names, want) {
			t.Fatalf("names %q, %v, want %q", names, err, want)
		}
		hba := postgres.HBA{Database: next.Database, Users: []string{next.Owner, next.ReadOnly}, Allow: d.Spec.HBA.Allow}
		if err := d.Supervisor.Update(t.Context(), d.Spec.ID, hba); err != nil {
			t.Fatal(err)
		}
	}
	d.Tenant.OwnerPassword, d.Tenant.ReadOnlyPassword = secret("owner-app"), secret("reader-app_readonly")
	allowed(t, d.ReadOnly(t), "select * from kept")
	allowed(t, d.Owner(t), "drop table kept")
}

// A prepared transaction belongs to no session and survives a restart of the
// server.
func TestRotationBesidePreparedTransaction(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = map[string]string{"max_prepared_transactions": "5"} })
	owner := d.Owner(t)
	allowed(t, owner, "begin", "create table kept (n int)", "prepare transaction 'bystander'",
		"begin", "alter role app set work_mem = '8MB'", "prepare transaction 'it''s in the way'")
	d.Tenant.OwnerPassword = model.NewSecret("another-one")
	if err := postgres.SetPasswords(within(t, 10*time.Second), d.Superuser(t, "postgres"), d.Tenant); err != nil {
		t.Fatal(err)
	}
	allowed(t, d.Owner(t), "commit prepared 'bystander'", "select * from kept")
}

// What changes a role or the database and leaves no lock on a catalog, as GRANT does, is found without guessing: of other
// transactions, open or prepared, none ends.
func TestProvisionBesideGrant(t *testing.T) {
	t.Parallel()
	grant := []string{"begin", "savepoint s", "grant connect on database app to app_readonly", "release savepoint s"}
	for name, inTheWay := range map[string][]string{"open": grant, "prepared": append(grant, "prepare transaction 'in the way'")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = map[string]string{"max_prepared_transactions": "5"} })
			open := d.Owner(t)
			allowed(t, open, "create table kept (n int)",
				"begin", "insert into kept select 1 from pg_database where datname = 'app'", "prepare transaction 'bystander'",
				"begin", "insert into kept values (2)")
			allowed(t, d.Owner(t), inTheWay...)
			if err := postgres.Provision(within(t, 10*time.Second), d.Superuser(t, "postgres"), d.Tenant); err != nil {
				t.Fatal(err)
			}
			allowed(t, open, "commit", "commit prepared 'bystander'")
			var left []string
			if err := open.QueryRow(t.Context(), "select array(select gid from pg_prepared_xacts)").Scan(&left); err != nil || len(left) > 0 {
				t.Errorf("left prepared: %q, %v", left, err)
			}
		})
	}
}

func TestProvisionRefuses(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	super := d.Superuser(t, "postgres")
	for _, wrong := range []postgres.Tenant{
		{Database: "app", Owner: "same", ReadOnly: "same"},
		{Database: "app", Owner: "pg_owner", ReadOnly: "app_readonly"},
		{Database: "app", Owner: "holdfast", ReadOnly: "app_readonly"},
		{Database: "postgres", Owner: "app", ReadOnly: "app_readonly"},
		{Database: "app", Owner: "", ReadOnly: "app_readonly"},
	} {
		if err := postgres.Provision(t.Context(), super, wrong); err == nil {
			t.Errorf("provisioned %+v", wrong)
		}
	}
	d.Owner(t) // nothing was changed, the session is usable
	if err := postgres.Provision(t.Context(), super, d.Tenant); err != nil {
		t.Errorf("after refusals: %v", err)
	}
}

func TestTerminateSessions(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	super := d.Superuser(t, "postgres")
	inTenants := d.Superuser(t, "app")
	dumps := dumper(t, d)
	kept := dial(t, d, "127.0.0.2")
	for range 5 {
		d.Owner(t)
	}
	d.ReadOnly(t)
	usage, err := postgres.Stats(t.Context(), super, "app")
	if err != nil || usage.Connections != 7 || usage.SSL != 7 || usage.NonSSL != 0 || usage.SizeBytes < 1<<20 {
		t.Errorf("usage %+v, %v", usage, err)
	}
	n, err := postgres.TerminateSessions(t.Context(), super, netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("127.0.0.2/31"))
	if err != nil || n != 6 {
		t.Errorf("ended %d, %v", n, err)
	}
	usage, err = postgres.Stats(t.Context(), super, "app")
	if err != nil || usage.Connections != 1 {
		t.Errorf("usage afterwards %+v, %v", usage, err)
	}
	for what, conn := range map[string]*pgx.Conn{
		"the session from where they are allowed": kept, "the superuser's session": inTenants, "a dump's session": dumps,
	} {
		if err := conn.Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// dial opens a session as the owner from a loopback address.
func dial(t *testing.T, d *postgrestest.Database, from string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(d.URL(d.Tenant.Owner, d.Tenant.OwnerPassword))
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext
	return logIn(t, config)
}

// dumper opens a session as pg_dump does.
func dumper(t *testing.T, d *postgrestest.Database) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(d.URL("holdfast_dump", d.Tenant.OwnerPassword))
	if err != nil {
		t.Fatal(err)
	}
	config.Host, config.TLSConfig, config.Fallbacks = d.SocketDir(t), nil, nil
	return logIn(t, config)
}

func logIn(t *testing.T, config *pgx.ConnConfig) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
