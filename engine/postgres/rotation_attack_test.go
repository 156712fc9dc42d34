package postgres_test

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// A role's settings in one database override those it has everywhere.
func TestRotationTakesBackSettingsInTheDatabase(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	allowed(t, d.ReadOnly(t), "set default_transaction_read_only = off",
		"alter role app_readonly in database app set default_transaction_read_only = off")
	allowed(t, d.ReadOnly(t), "begin read write", "rollback")
	if err := postgres.SetPasswords(t.Context(), d.Superuser(t, "postgres"), d.Tenant); err != nil {
		t.Fatal(err)
	}
	refused(t, d.ReadOnly(t), "25006", []string{"create table x (n int)"})
}

// A client with the old password must not keep its access: neither by an open
// transaction that has changed the role, nor by changing the role all the time.
func TestRotationIsNotHeldUp(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	super := d.Superuser(t, "postgres")
	for name, attack := range map[string]func(testing.TB) *pgx.Conn{"app": d.Owner, "app_readonly": d.ReadOnly} {
		conn := attack(t)
		allowed(t, conn, "begin read write", "alter role "+name+" set work_mem = '8MB'", "alter role "+name+" password 'mine'")
		began := time.Now()
		if err := postgres.SetPasswords(within(t, 5*time.Second), super, d.Tenant); err != nil {
			t.Errorf("%s holds it up: %v", name, err)
		}
		t.Logf("%s: %v", name, time.Since(began))
	}
	bystander, attacker := d.Owner(t), d.Owner(t)
	attack, enough := context.WithCancel(t.Context())
	var attacking sync.WaitGroup
	attacking.Go(func() {
		for {
			if _, err := attacker.Exec(attack, "alter role app set work_mem = '8MB'"); err != nil {
				return
			}
		}
	})
	defer attacking.Wait()
	defer enough()
	for range 20 {
		if err := postgres.SetPasswords(within(t, 5*time.Second), super, d.Tenant); err != nil {
			t.Fatalf("among changes: %v", err)
		}
	}
	allowed(t, bystander, "select 1")
}

// Nor can a tenant delay the start of its database, or of others that wait for
// their turn.
func TestProvisionIsNotHeldUp(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	super := d.Superuser(t, "postgres")
	for _, change := range []string{
		"alter role app password 'mine'", "alter role app set work_mem = '8MB'", "alter database app set work_mem = '8MB'",
		"alter database app connection limit 7", "grant connect on database app to public", "grant app to app_readonly",
	} {
		conn := d.Owner(t)
		if _, err := conn.Exec(t.Context(), "begin"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), change); err != nil {
			t.Logf("%s: %v", change, err) // not the owner's to change
		}
		if err := postgres.Provision(within(t, 5*time.Second), super, d.Tenant); err != nil {
			t.Errorf("%s holds it up: %v", change, err)
		}
	}
}

// Any client that reaches the port can put a line feed into a user name; it must
// not begin a line of the log that looks like the postmaster's.
func TestNamesDoNotForgeTheLog(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	config, err := pgx.ParseConfig(d.URL("app", d.Tenant.OwnerPassword))
	if err != nil {
		t.Fatal(err)
	}
	config.User, config.Database = "x\n2026-01-01 [1] LOG:  could not bind", "already in use"
	if _, err := pgx.ConnectConfig(t.Context(), config); sqlState(err) != "28000" {
		t.Fatal(err)
	}
	log := ""
	testenv.Eventually(t, "the login in the log", func() bool {
		log = serverLog(t, d.Spec.Dir)
		return strings.Contains(log, "could not bind")
	})
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "2026-01-01 [1]") {
			t.Errorf("a forged line: %s", line)
		}
	}
}

// A login that began before the password was rotated, or before its address left
// the rules, and continues afterwards gives no access: it ends with the sessions.
func TestLoginHalfDone(t *testing.T) {
	t.Parallel()
	rotate := func(t *testing.T, d *postgrestest.Database) error {
		d.Tenant.OwnerPassword = model.NewSecret("another one")
		return postgres.SetPasswords(t.Context(), d.Superuser(t, "postgres"), d.Tenant)
	}
	shutOut := func(t *testing.T, d *postgrestest.Database) error {
		d.Spec.HBA.Allow = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
		return d.Supervisor.Update(t.Context(), d.Spec.ID, d.Spec.HBA)
	}
	for _, test := range []struct {
		name   string
		silent bool
		change func(*testing.T, *postgrestest.Database) error
	}{
		{"asked for the password", false, rotate},
		{"asked for the password from where it may not", false, shutOut},
		{"has not said anything", true, shutOut},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := postgrestest.Instance(t)
			super := d.Superuser(t, "postgres")
			before := processesBelow(t, filepath.Dir(d.Spec.Dir))
			late := newLateClient(test.silent)
			config, err := pgx.ParseConfig(d.URL("app", d.Tenant.OwnerPassword))
			if err != nil {
				t.Fatal(err)
			}
			config.DialFunc, config.TLSConfig, config.Fallbacks = late.dial, nil, nil
			got := make(chan error, 1)
			go func() {
				conn, err := pgx.ConnectConfig(t.Context(), config)
				if err == nil {
					_, err = conn.Exec(t.Context(), "create table mine (n int)")
					_ = conn.Close(context.WithoutCancel(t.Context()))
				}
				got <- err
			}()
			<-late.waits
			testenv.Within(t, 30*time.Second, "its process", func() bool { return anotherProcess(t, d, before) })
			if err := test.change(t, d); err != nil {
				t.Fatal(err)
			}
			if _, err := postgres.TerminateSessions(within(t, 20*time.Second), super); err != nil {
				t.Fatal(err)
			}
			close(late.goes)
			if err := <-got; err == nil {
				t.Error("the login went on")
			}
		})
	}
}

// lateClient is a client that stops while it logs in: before it sends anything, or
// when it is asked for the password.
type lateClient struct {
	net.Conn
	silent      bool
	waits, goes chan struct{}
	once        *sync.Once
}

func newLateClient(silent bool) lateClient {
	return lateClient{silent: silent, waits: make(chan struct{}), goes: make(chan struct{}), once: &sync.Once{}}
}

func (c lateClient) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var err error
	c.Conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	return c, err
}

func (c lateClient) wait() {
	c.once.Do(func() { close(c.waits) })
	<-c.goes
}

func (c lateClient) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.silent {
		c.wait()
	}
	return n, err
}

func (c lateClient) Write(p []byte) (int, error) {
	if c.silent {
		c.wait()
	}
	return c.Conn.Write(p)
}
