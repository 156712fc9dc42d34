package cli_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTLS serves the API with a certificate from the appliance's own
// authority.
func TestTLS(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--tls")
	authority, err := os.ReadFile(filepath.Join(m.dataDir, "tls", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		t.Fatal("no certificate in ca.crt")
	}
	ask := func(c *tls.Config) error {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
		answer, err := client.Get(m.api + "/openapi.json")
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	if err := ask(&tls.Config{RootCAs: pool}); err != nil {
		t.Errorf("with the authority's certificate: %v", err)
	}
	if err := ask(&tls.Config{}); err == nil {
		t.Error("a client that does not know the authority trusts it")
	}
	if err := ask(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}

// TestClientTrustsTheAuthority checks that client commands trust an appliance's
// own authority if configured, and otherwise say how to.
func TestClientTrustsTheAuthority(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--tls")
	whoami := func(args ...string) (string, error) {
		cmd := exec.Command(program, append([]string{"whoami", "--url", m.api}, args...)...)
		cmd.Env = append(os.Environ(), "HOLDFAST_API_KEY="+m.key, "XDG_CONFIG_HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := whoami()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 8 || !strings.Contains(out, "--ca-cert") {
		t.Errorf("without the authority: %v, %s", err, out)
	}
	if out, err := whoami("--ca-cert", filepath.Join(m.dataDir, "tls", "ca.crt")); err != nil || !strings.Contains(out, "default") {
		t.Errorf("with the authority: %v, %s", err, out)
	}
	if out, err := whoami("--url", strings.Replace(m.api, "https://", "http://", 1)); err == nil {
		t.Errorf("in the clear: %s", out)
	}
}
