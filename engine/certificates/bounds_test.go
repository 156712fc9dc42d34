package certificates_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/engine/certificates"
)

// bounded creates a CA in dir that is bounded to hosts.
func bounded(t *testing.T, dir string, hosts ...string) certificates.CA {
	t.Helper()
	ca, err := certificates.LoadOrCreateCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	if ca, err = ca.Bound(dir, hosts); err != nil {
		t.Fatal(err)
	}
	return ca
}

// thief signs with the key of a stolen CA, regardless of its bounds.
type thief struct {
	t   *testing.T
	ca  *x509.Certificate
	key any
}

func steal(t *testing.T, dir string) thief {
	t.Helper()
	stolen := thief{t: t, ca: readCert(t, filepath.Join(dir, "ca.crt"))}
	text, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if stolen.key, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
		t.Fatal(err)
	}
	return stolen
}

func readCert(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// forge returns a certificate for a host.
func (s thief) forge(host string, change func(*x509.Certificate)) []byte {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "forged for it"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, s.ca, key.Public(), s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// trusts reports whether both Go and OpenSSL, given the CA's certificate, accept
// another certificate for a host.
func trusts(t *testing.T, caPEM string, certPEM []byte, host string) bool {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(caPEM))
	block, _ := pem.Decode(certPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	_, inGo := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
	name := "-verify_hostname"
	if net.ParseIP(host) != nil {
		name = "-verify_ip"
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "ca.crt"), caPEM)
	writeFile(t, filepath.Join(dir, "server.crt"), string(certPEM))
	out, inOpenSSL := exec.Command("openssl", "verify", "-purpose", "sslserver", "-x509_strict", name, host,
		"-no-CApath", "-no-CAstore", "-CAfile", filepath.Join(dir, "ca.crt"), filepath.Join(dir, "server.crt")).CombinedOutput()
	if (inGo == nil) != (inOpenSSL == nil) {
		t.Errorf("%s: Go says %v, OpenSSL %v: %s", host, inGo, inOpenSSL, out)
	}
	return inGo == nil
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// needsOpenSSL skips the test if OpenSSL is not installed.
func needsOpenSSL(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// TestStolenAuthority signs with a stolen ca.key for hosts that the appliance
// does not serve.
func TestStolenAuthority(t *testing.T) {
	t.Parallel()
	needsOpenSSL(t)
	dir := t.TempDir()
	ca := bounded(t, dir, "DB.example.org", "my_db", "198.51.100.7", "2001:db8::7", "::ffff:198.51.100.8")
	stolen := steal(t, dir)
	same := func(*x509.Certificate) {}
	for host, want := range map[string]bool{
		"db.example.org": true, "my_db": true, "198.51.100.7": true, "198.51.100.8": true, "2001:db8::7": true,
		"localhost": true, "nas.local": true, "127.0.0.1": true, "::1": true, "10.1.2.3": true, "192.168.7.8": true, "fd00::5": true,
		"www.example.com": false, "example.org": false, "other.example.org": false, "notdb.example.org": false, "db.example.org.example.com": false,
		"local.example.com": false, "198.51.100.9": false, "8.8.8.8": false, "172.32.0.1": false, "2001:db8::8": false, "::2": false,
	} {
		if got := trusts(t, ca.PEM(), stolen.forge(host, same), host); got != want {
			t.Errorf("a forged certificate for %s: trusted %t", host, got)
		}
		if got := ca.Covers([]string{"localhost", host}); got != want {
			t.Errorf("covers %s: %t", host, got)
		}
	}
	both := stolen.forge("localhost", func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "www.example.com") })
	if trusts(t, ca.PEM(), both, "localhost") || trusts(t, ca.PEM(), both, "www.example.com") {
		t.Error("a forged certificate for two hosts is trusted")
	}
	client := stolen.forge("localhost", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	if trusts(t, ca.PEM(), client, "localhost") {
		t.Error("a forged certificate of a client is trusted")
	}
	if stolen.ca.MaxPathLen != 0 || !stolen.ca.MaxPathLenZero || stolen.ca.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign {
		t.Errorf("path length %d, usage %b", stolen.ca.MaxPathLen, stolen.ca.KeyUsage)
	}
	if err := ca.Issue(certificates.In(t.TempDir()), []string{"localhost", "www.example.com"}, time.Hour); err == nil || !strings.Contains(err.Error(), "www.example.com") {
		t.Errorf("issued beyond the bounds: %v", err)
	}
}

// TestBoundsLockNobodyOut has clients keep a CA certificate from before it was
// bounded, and from before its bounds were widened.
func TestBoundsLockNobodyOut(t *testing.T) {
	t.Parallel()
	needsOpenSSL(t)
	dir := t.TempDir()
	first, err := certificates.LoadOrCreateCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	second := bounded(t, dir, "db.example.org")
	third, err := second.Bound(dir, []string{"db.example.com", "198.51.100.7"})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := certificates.LoadOrCreateCA(dir); err != nil || again.PEM() != third.PEM() {
		t.Fatalf("not kept: %v", err)
	}
	issued := func(ca certificates.CA, hosts ...string) []byte {
		t.Helper()
		at := t.TempDir()
		if err := ca.Issue(certificates.In(at), hosts, time.Hour); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(at, "server.crt"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	old, renamed := issued(second, "db.example.org", "localhost"), issued(third, "db.example.com", "198.51.100.7", "localhost")
	for _, test := range []struct {
		what        string
		ca          certificates.CA
		certificate []byte
		host        string
		want        bool
	}{
		{"the unbounded, with what was issued later", first, renamed, "db.example.com", true},
		{"the unbounded, by an old name", first, old, "db.example.org", true},
		{"the widened, by the new name", third, renamed, "db.example.com", true},
		{"the widened, by the new address", third, renamed, "198.51.100.7", true},
		{"the widened, with what was issued before", third, old, "db.example.org", true},
		{"the widened, with addresses alone", third, issued(third, "10.0.0.1", "198.51.100.7"), "198.51.100.7", true},
		{"the first bounds, beyond them", second, renamed, "localhost", false},
	} {
		if got := trusts(t, test.ca.PEM(), test.certificate, test.host); got != test.want {
			t.Errorf("%s: %t", test.what, got)
		}
	}

	// A lost certificate is reissued for the same key, and old clients still accept
	// it.
	if err := os.Remove(filepath.Join(dir, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	found := bounded(t, dir, "db.example.org")
	if !trusts(t, first.PEM(), issued(found, "db.example.org"), "db.example.org") {
		t.Error("the CA has another key")
	}
}
