package engine

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/certificates"
	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// tlsConnect opens a session that trusts only the appliance's CA, and returns the fingerprint of the server's
// certificate.
func tlsConnect(t *testing.T, c databases.Connection, change func(*tls.Config)) (*pgx.Conn, string, error) {
	t.Helper()
	config, err := pgx.ParseConfig(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(c.CACertificate)) {
		t.Fatal("the CA certificate is no PEM text")
	}
	shown := ""
	config.TLSConfig = &tls.Config{
		RootCAs: roots, ServerName: c.Host,
		VerifyConnection: func(s tls.ConnectionState) error {
			sum := sha256.Sum256(s.PeerCertificates[0].Raw)
			shown = hex.EncodeToString(sum[:])
			return nil
		},
	}
	change(config.TLSConfig)
	config.Fallbacks = nil
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, shown, err
}

func unchanged(*tls.Config) {}

func TestCertificateRenewal(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64 // how far the clock is ahead
	cfg := testConfig(t, newDataDir(t))
	cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	certificate := func() certificates.Certificate {
		ssl, err := a.Databases.SSLGet(a.call(model.ActionSSLGet), db.ID)
		if err != nil {
			t.Fatal(err)
		}
		return ssl.Certificate
	}
	fingerprint := func() string { return certificate().Fingerprint }
	session, first, err := tlsConnect(t, c, unchanged)
	if err != nil {
		t.Fatal(err)
	}
	if first != fingerprint() {
		t.Error("the API shows another certificate than the server")
	}
	pid := a.pid(t, db.ID)

	due := time.Until(certificate().NotAfter.Add(-30 * 24 * time.Hour))
	ahead.Store(int64(due - time.Hour))
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fingerprint() != first {
		t.Error("renewed before its time")
	}

	ahead.Store(int64(due + time.Hour))
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	renewed := fingerprint()
	if renewed == first {
		t.Fatal("not renewed")
	}
	if _, shown, err := tlsConnect(t, c, unchanged); err != nil || shown != renewed {
		t.Errorf("a new session is shown %s, not the renewed %s: %v", shown, renewed, err)
	}
	var n int
	if err := session.QueryRow(t.Context(), "select 7").Scan(&n); err != nil || n != 7 {
		t.Errorf("the open session: %d, %v", n, err)
	}
	if a.pid(t, db.ID) != pid {
		t.Error("the instance was restarted")
	}
	a.awaitAudit(t, model.ActionCertificateRenew, db.ID)
}

// A database that is down when its certificate expires gets a new one at its start. So does one whose certificate files
// are damaged, missing or for other hosts.
func TestCertificateAtStart(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	gone, goneConnection := a.createDatabase(t, "gone")
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	writeFile(t, a.Databases.DataDirectory(db.ID, 1)+"/pg_replslot/server.key", "not a key")
	writeFile(t, a.Databases.DataDirectory(gone.ID, 1)+"/server.crt", "")
	b := a.reopen(t)
	for id, connection := range map[string]databases.Connection{db.ID: c, gone.ID: goneConnection} {
		b.awaitStatus(t, id, model.DatabaseAvailable, 30*time.Second)
		if _, _, err := tlsConnect(t, connection, unchanged); err != nil {
			t.Error(err)
		}
	}
	// The same when the machine's name changes.
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.cfg.PublicHost = "db.example.org"
	third := b.reopen(t)
	third.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
	if _, _, err := tlsConnect(t, c, func(config *tls.Config) { config.ServerName = "db.example.org" }); err != nil {
		t.Error(err)
	}
}

func TestTLSVersions(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	_, c := a.createDatabase(t, "shop")
	for version, accepted := range map[uint16]bool{
		tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true,
	} {
		_, _, err := tlsConnect(t, c, func(config *tls.Config) { config.MinVersion, config.MaxVersion = version, version })
		if name := tls.VersionName(version); accepted != (err == nil) {
			t.Errorf("%s: %v", name, err)
		} else if err != nil && !strings.Contains(err.Error(), "protocol version") {
			t.Errorf("%s was refused for another reason: %v", name, err)
		}
	}
	// A client that expects another name is not deceived.
	if _, _, err := tlsConnect(t, c, func(config *tls.Config) { config.ServerName = "example.org" }); err == nil {
		t.Error("the certificate is good for any name")
	}
}

// TestCertificateOfALeap: a certificate that was issued while the clock was ahead is replaced once it is right.
func TestCertificateOfALeap(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	issued := func() string {
		t.Helper()
		file, _, err := a.Databases.APICertificate()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := issued()
	if issued() != first {
		t.Error("a valid certificate was replaced")
	}
	by.Store(int64(-2 * time.Hour)) // the certificate is valid from an hour before it was issued
	if issued() == first {
		t.Error("the certificate of a time ahead stays")
	}
}

// The check of a certificate that needs no renewal claims no database, which would refuse requests meanwhile.
func TestCertificateCheckClaimsNothing(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	record := a.record(t, db.ID)
	checked := make(chan error, 1)
	go func() {
		var err error
		for range 500 {
			err = errors.Join(err, a.Databases.RenewRunning(t.Context(), record))
		}
		checked <- err
	}()
	for {
		select {
		case err := <-checked:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
		release, err := a.Core.Claims.Take(db.ID, "a request")
		if err != nil {
			t.Fatal(errors.Join(err, <-checked))
		}
		release()
	}
}
