package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// tryConnect returns an error unless a connection gets as far as a query.
func tryConnect(t *testing.T, url string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.Ping(ctx)
}

func refusedByRules(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "28000" && strings.Contains(pg.Message, "pg_hba.conf")
}

func TestLoopbackWithAndWithoutTLS(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	for _, mode := range []string{"disable", "require"} {
		url := strings.Replace(d.URL("app", d.Tenant.OwnerPassword), "require", mode, 1)
		if err := tryConnect(t, url); err != nil {
			t.Errorf("sslmode=%s from loopback: %v", mode, err)
		}
	}
	if err := tryConnect(t, d.URL("app", model.NewSecret("wrong"))); err == nil {
		t.Error("let in with a wrong password")
	}
}

func TestOthersOnlyWithTLS(t *testing.T) {
	t.Parallel()
	host := ownAddress(t)
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.Config.Listen = []string{"*"}
		s.HBA.Allow = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	})
	for _, c := range []struct {
		host, mode string
		in         bool
	}{
		{"127.0.0.1", "disable", true},
		{"127.0.0.1", "require", true},
		{host, "disable", false},
		{host, "require", true},
	} {
		url := fmt.Sprintf("postgres://app:%s@%s/app?sslmode=%s", d.Tenant.OwnerPassword.Reveal(), net.JoinHostPort(c.host, fmt.Sprint(d.Spec.Config.Port)), c.mode)
		err := tryConnect(t, url)
		if c.in != (err == nil) || !c.in && !refusedByRules(err) {
			t.Errorf("%s with sslmode=%s: %v", c.host, c.mode, err)
		}
	}
}

// ownAddress returns a non-loopback address of this machine. Connections to it also
// come from it.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no address but loopback")
	return ""
}

func TestSuperuserIsRefusedOnTCP(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.HBA.Users = append(s.HBA.Users, postgres.Superuser)
		s.HBA.Allow = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	})
	// Even with a password, which the role normally lacks.
	if _, err := d.Superuser(t, "postgres").Exec(t.Context(), "alter role holdfast password 'known'"); err != nil {
		t.Fatal(err)
	}
	for _, database := range []string{"app", "postgres", "template1"} {
		for _, mode := range []string{"disable", "require"} {
			url := fmt.Sprintf("postgres://holdfast:known@127.0.0.1:%d/%s?sslmode=%s", d.Spec.Config.Port, database, mode)
			if err := tryConnect(t, url); !refusedByRules(err) {
				t.Errorf("holdfast, database %s, sslmode=%s: %v", database, mode, err)
			}
		}
	}
}

func TestTenantReachesItsDatabaseAlone(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	for _, database := range []string{"postgres", "template1", "nothing"} {
		url := strings.Replace(d.URL("app", d.Tenant.OwnerPassword), "/app?", "/"+database+"?", 1)
		if err := tryConnect(t, url); !refusedByRules(err) {
			t.Errorf("database %s: %v", database, err)
		}
	}
	socket := fmt.Sprintf("host=%s port=%d user=app dbname=app password=%s", d.SocketDir(t), d.Spec.Config.Port, d.Tenant.OwnerPassword.Reveal())
	if err := tryConnect(t, socket); !refusedByRules(err) {
		t.Errorf("over the private socket: %v", err)
	}
	if err := tryConnect(t, d.URL("app", d.Tenant.OwnerPassword)+"&replication=true"); err == nil {
		t.Error("let in for replication")
	}
}

func TestUpdateIsInForceWhenItReturns(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	url := d.URL("app", d.Tenant.OwnerPassword)
	for n := range 20 {
		hba := d.Spec.HBA
		if n%2 == 0 {
			hba.Allow = nil
		}
		began := time.Now()
		if err := d.Supervisor.Update(t.Context(), d.Spec.ID, hba); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			t.Logf("in force after %v", time.Since(began))
		}
		if err := tryConnect(t, url); (err == nil) != (n%2 == 1) {
			t.Fatalf("round %d: %v", n, err)
		}
	}
}

func TestUpdateRefusesWhatCannotBeSaid(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	for _, name := range []string{"", "/regex", "line\nbreak", strings.Repeat("x", 300)} {
		hba := d.Spec.HBA
		hba.Users = []string{name}
		if err := d.Supervisor.Update(t.Context(), d.Spec.ID, hba); err == nil {
			t.Errorf("user %q was taken", name)
		}
	}
	if err := tryConnect(t, d.URL("app", d.Tenant.OwnerPassword)); err != nil {
		t.Errorf("after refused updates: %v", err)
	}
}

// TestLocalRole checks that the appliance's permitted role logs in over the socket,
// only to its database, and that no role logs in over TCP.
func TestLocalRole(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.HBA = postgres.HBA{Database: "app", Local: "app"} })
	conn, err := d.Supervisor.ConnectLocal(t.Context(), d.Spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var who, session, super string
	if err := conn.QueryRow(t.Context(), "select current_user, session_user, current_setting('is_superuser')").Scan(&who, &session, &super); err != nil || who+session+super != "appappoff" {
		t.Errorf("the local session is %s, %s, superuser %s: %v", who, session, super, err)
	}
	for _, statement := range []string{"set role holdfast", "set session authorization holdfast", "set log_statement = none"} {
		if _, err := conn.Exec(t.Context(), statement); err == nil {
			t.Errorf("%s is let", statement)
		}
	}
	socket := func(role, database string) string {
		return fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", d.SocketDir(t), d.Spec.Config.Port, role, database)
	}
	for _, url := range []string{socket("app_readonly", "app"), socket("app", "postgres"), socket("app", "template1"), d.URL("app", d.Tenant.OwnerPassword)} {
		if err := tryConnect(t, url); !refusedByRules(err) {
			t.Errorf("%s: %v", strings.ReplaceAll(url, d.Tenant.OwnerPassword.Reveal(), "…"), err)
		}
	}
	if err := d.Supervisor.Update(t.Context(), d.Spec.ID, postgres.HBA{Database: "app"}); err != nil {
		t.Fatal(err)
	}
	if err := tryConnect(t, socket("app", "app")); !refusedByRules(err) {
		t.Errorf("the local role is let in after it was taken back: %v", err)
	}
}
