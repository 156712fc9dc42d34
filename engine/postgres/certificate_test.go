package postgres_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"holdfast/engine/certificates"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
)

// verified connects as sslmode=verify-full does and returns the session.
func verified(t *testing.T, d *postgrestest.Database, host string) (*pgx.Conn, error) {
	t.Helper()
	config, err := pgx.ParseConfig(strings.Replace(d.URL("app", d.Tenant.OwnerPassword), "127.0.0.1", host, 1))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(d.CA.PEM()))
	config.TLSConfig = &tls.Config{RootCAs: roots, ServerName: host}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

func TestVerifyFull(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	for _, host := range []string{"localhost", "127.0.0.1"} {
		if _, err := verified(t, d, host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := d.CA.Issue(certificates.InDataDirectory(d.Spec.Dir), []string{"db.example.org"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := d.Supervisor.Reload(t.Context(), d.Spec.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := verified(t, d, "localhost"); err == nil || !strings.Contains(err.Error(), "db.example.org") {
		t.Errorf("with a certificate of another host: %v", err)
	}
}

func TestRenewalDropsNoSession(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	owner := d.Owner(t)
	before, err := certificates.Read(certificates.InDataDirectory(d.Spec.Dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.CA.Issue(certificates.InDataDirectory(d.Spec.Dir), []string{"localhost", "127.0.0.1"}, 90*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := d.Supervisor.Reload(t.Context(), d.Spec.ID); err != nil {
		t.Fatal(err)
	}
	after, err := certificates.Read(certificates.InDataDirectory(d.Spec.Dir))
	if err != nil || after.Fingerprint == before.Fingerprint || !after.NotAfter.After(before.NotAfter) {
		t.Errorf("before %+v, after %+v, %v", before, after, err)
	}
	if err := owner.Ping(t.Context()); err != nil {
		t.Errorf("the open session: %v", err)
	}
	conn, err := verified(t, d, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	served := conn.PgConn().Conn().(*tls.Conn).ConnectionState().PeerCertificates[0]
	if !served.NotAfter.Equal(after.NotAfter) {
		t.Error("the old certificate is still served")
	}
}

// TLS 1.1 and older are refused.
func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	for version, in := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", d.Spec.Config.Port))
		if err != nil {
			t.Fatal(err)
		}
		// SSLRequest, section 55.7 of PostgreSQL's documentation.
		request := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), 80877103)
		answer := make([]byte, 1)
		if _, err := conn.Write(request); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(answer); err != nil || answer[0] != 'S' {
			t.Fatalf("answer %q, %v", answer, err)
		}
		c := tls.Client(conn, &tls.Config{MinVersion: version, MaxVersion: version, InsecureSkipVerify: true})
		if err := c.HandshakeContext(t.Context()); (err == nil) != in {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		conn.Close()
	}
}
