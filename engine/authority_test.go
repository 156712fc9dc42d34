package engine

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// TestAuthorityFollowsTheHosts gives an appliance one public name, and later another. Clients keep the CA certificate
// that they have.
func TestAuthorityFollowsTheHosts(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, onLoopback := a.createDatabase(t, "shop")
	if a.Databases.CA.Bounded() {
		t.Error("an appliance of loopback alone has an authority with bounds")
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	logged := func() string {
		text, err := os.ReadFile(log.Name())
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	as := func(host string) databases.Connection {
		t.Helper()
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.cfg.PublicHost, a.cfg.Log = host, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		a = a.reopen(t)
		a.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
		c, err := a.Databases.Connection(a.call(model.ActionDatabaseConnection), db.ID)
		if err != nil {
			t.Fatal(err)
		}
		c.Host = "127.0.0.1"
		return c
	}
	verifies := func(what string, c databases.Connection, name string) {
		t.Helper()
		if _, _, err := tlsConnect(t, c, func(config *tls.Config) { config.ServerName = name }); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	first := as("db.example.org")
	verifies("with the certificate from before, on loopback", onLoopback, "127.0.0.1")
	verifies("with the certificate from before, by the name", onLoopback, "db.example.org")
	verifies("with the bounds", first, "db.example.org")
	if !a.Databases.CA.Bounded() || a.Databases.CA.Covers([]string{"www.example.com"}) || strings.Contains(logged(), "issued again") {
		t.Errorf("bounded %t: %s", a.Databases.CA.Bounded(), logged())
	}
	if again := as("db.example.org"); again.CACertificate != first.CACertificate {
		t.Error("issued again without a reason")
	}
	second := as("db.example.net")
	verifies("with the certificate from loopback", onLoopback, "db.example.net")
	verifies("with wider bounds", second, "db.example.net")
	if !strings.Contains(logged(), "issued again") || !strings.Contains(logged(), a.Databases.CAFile()) {
		t.Errorf("the operator is not told: %s", logged())
	}
	if local := as("127.0.0.1"); local.CACertificate != second.CACertificate {
		t.Error("the bounds changed for loopback")
	}
	verifies("with the first bounds, within them", first, "localhost")
}
