package cli_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestStrictTransport checks the header of the console and the API for each
// combination of flags.
func TestStrictTransport(t *testing.T) {
	t.Parallel()
	const year = "max-age=31536000"
	certificate, key := operatorCertificate(t)
	own := []string{"--tls-cert", certificate, "--tls-key", key, "--public-url", "https://Db.example.com"}
	proxy := []string{"--public-url", "https://db.example.com"}
	for name, c := range map[string]struct {
		flags  []string
		scheme string
		want   map[string]string // by requested host
	}{
		"a certificate of the operator's own": {own, "https", map[string]string{
			"db.example.com": year, "DB.example.com:8432": year, "localhost": "", "127.0.0.1": "", "other.example.com": "",
		}},
		"taken back": {append([]string{"--hsts-max-age", "0"}, own...), "https", map[string]string{"db.example.com": "max-age=0"}},
		"a proxy":    {proxy, "http", map[string]string{"db.example.com": year, "localhost:8432": year}},
		"the appliance's own authority": {[]string{"--tls", "--public-url", "https://db.example.com"}, "https", map[string]string{
			"db.example.com": "",
		}},
		"an address":   {[]string{"--public-url", "https://192.0.2.1"}, "http", map[string]string{"192.0.2.1": "", "localhost": ""}},
		"this machine": {[]string{"--public-url", "https://localhost"}, "http", map[string]string{"localhost": ""}},
		"plain HTTP":   {nil, "http", map[string]string{"db.example.com": "", "localhost": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.start(append([]string{"--warm", "0"}, c.flags...)...)
			for host, want := range c.want {
				for _, path := range []string{"/sign-in", "/v1/openapi.json", "/v1/databases", "/objects/bucket_1/key"} {
					if got := m.strictTransport(c.scheme, host, path); got != want {
						t.Errorf("%s%s: %q, want %q", host, path, got, want)
					}
				}
			}
		})
	}
}

// TestStrictTransportIsNotForObjects checks that objects with their own origin
// do not send the header: the appliance knows less about that host.
func TestStrictTransportIsNotForObjects(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--warm", "0", "--public-url", "https://db.example.com", "--objects-url", "https://files.example.com")
	if got := m.strictTransport("http", "files.example.com", "/objects/bucket_1/key"); got != "" {
		t.Errorf("objects: %q", got)
	}
}

// strictTransport returns the header in the machine's response for a host,
// whatever its certificate.
func (m *machine) strictTransport(scheme, host, path string) string {
	m.t.Helper()
	var dialer net.Dialer
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, m.listen)
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}
	request, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, scheme+"://"+host+path, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		m.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.Header.Get("Strict-Transport-Security")
}

// operatorCertificate creates the files of a certificate for db.example.com
// that is not the appliance's own, readable by the appliance's user.
func operatorCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"db.example.com"}, NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}
