package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
)

// A role's settings in one database come before those it has everywhere.
func TestRotationTakesBackSettingsInTheDatabase(t *testing.T) {
	d := postgrestest.Instance(t)
	allowed(t, d.ReadOnly(t), "set default_transaction_read_only = off",
		"alter role app_readonly in database app set default_transaction_read_only = off")
	allowed(t, d.ReadOnly(t), "begin read write", "rollback")
	if err := postgres.SetPasswords(t.Context(), d.Superuser(t, "postgres"), d.Tenant); err != nil {
		t.Fatal(err)
	}
	refused(t, d.ReadOnly(t), "25006", []string{"create table x (n int)"})
}

// Who has the password may not keep it: neither by a transaction that has
// changed the role and does not end, nor by changing it all the time.
func TestRotationIsNotHeldUp(t *testing.T) {
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

// Nor does a tenant hold up the start of his database, and of others that wait for
// their turn.
func TestProvisionIsNotHeldUp(t *testing.T) {
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
			t.Logf("%s: %v", change, err) // not his to change
		}
		if err := postgres.Provision(within(t, 5*time.Second), super, d.Tenant); err != nil {
			t.Errorf("%s holds it up: %v", change, err)
		}
	}
}

// Whoever reaches the port can put a line feed into a user's name; it may not
// begin a line of the log that looks like the postmaster's.
func TestNamesDoNotForgeTheLog(t *testing.T) {
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
	for deadline := time.Now().Add(5 * time.Second); !strings.Contains(log, "could not bind") && time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		log = serverLog(t, d.Spec.Dir)
	}
	if !strings.Contains(log, "could not bind") {
		t.Error("nothing in the log, which shows nothing")
	}
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "2026-01-01 [1]") {
			t.Errorf("a forged line: %s", line)
		}
	}
}
