package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// proxyPatience is the read timeout of the proxies in tests: longer than the time between heartbeats, and shorter than
// the silence that a stream must survive.
const proxyPatience = 20 * time.Second

// proxies are configurations of reverse proxies as people write them, with a short read timeout. They speak HTTP/2 over
// TLS to clients. The arguments are the directory, the address, the appliance's URL and the read timeout.
var proxies = map[string]struct{ file, config, command string }{
	"nginx": {"nginx.conf", `daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s ssl http2;
		ssl_certificate %[1]s/cert.pem;
		ssl_certificate_key %[1]s/key.pem;
		location / {
			proxy_pass %[3]s;
			proxy_read_timeout %[4]s;
		}
	}
}
`, "nginx -e stderr -c %s"},
	"caddy": {"Caddyfile", `{
	admin off
	auto_https off
}
https://%[2]s {
	tls %[1]s/cert.pem %[1]s/key.pem
	reverse_proxy %[3]s {
		transport http {
			read_timeout %[4]s
		}
	}
}
`, "caddy run --adapter caddyfile --config %s"},
}

// TestEventsBehindProxies follows events and an operation through proxies over HTTP/2, and over the appliance's own TLS:
// messages come at once, and heartbeats keep a silent stream open for longer than a proxy waits.
func TestEventsBehindProxies(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(name); err != nil {
				t.Skipf("%s is not there", name)
			}
			m := newMachine(t)
			m.start()
			base, authority := m.behind(t, name)
			m.followsEvents(t, base, authority)
		})
	}
	t.Run("the appliance's TLS", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		m.start("--tls")
		authority, err := os.ReadFile(filepath.Join(m.dataDir, "tls", "ca.crt"))
		if err != nil {
			t.Fatal(err)
		}
		m.followsEvents(t, strings.TrimSuffix(m.api, "/v1"), authority)
	})
}

// behind starts a proxy in front of a machine, and returns its URL and the certificate that clients have to trust.
func (m *machine) behind(t *testing.T, name string) (base string, authority []byte) {
	t.Helper()
	dir, proxy := t.TempDir(), proxies[name]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	authority = selfSigned(t, dir)
	file := filepath.Join(dir, proxy.file)
	config := fmt.Sprintf(proxy.config, dir, address, strings.TrimSuffix(m.api, "/v1"), proxyPatience)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	args := strings.Fields(fmt.Sprintf(proxy.command, file))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	var log lockedBuffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", name, log.String())
		}
	})
	testenv.Eventually(t, name+" to listen", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return "https://" + address, authority
}

// selfSigned writes cert.pem and key.pem for 127.0.0.1, and returns the former.
func selfSigned(t *testing.T, dir string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{"cert.pem": cert, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert
}

// followsEvents follows streams at a URL over HTTP/2.
func (m *machine) followsEvents(t *testing.T, base string, authority []byte) {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		t.Fatal("no certificate")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(method, path string, body any) *http.Response {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		request, err := http.NewRequestWithContext(ctx, method, base+"/v1"+path, nil)
		if body != nil {
			request, err = http.NewRequestWithContext(ctx, method, base+"/v1"+path, bytes.NewReader(text))
			request.Header.Set("Content-Type", "application/json")
		}
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+m.key)
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 {
			t.Fatalf("%s %s: %s %s", method, path, answer.Proto, answer.Status)
		}
		return answer
	}
	read := func(answer *http.Response, out any) {
		t.Helper()
		if err := json.NewDecoder(answer.Body).Decode(&struct{ Data any }{out}); err != nil {
			t.Fatal(err)
		}
	}
	events := linesOf(ask("GET", "/events", nil))
	happen := func(name string) {
		t.Helper()
		ask("POST", "/account/api-keys", map[string]any{"name": name, "preset": "read_only"})
		await(t, events, "data: ", 5*time.Second) // far less than what fills a buffer
	}
	await(t, events, ":", 5*time.Second)
	happen("at once")
	for quiet := time.Now().Add(proxyPatience + 10*time.Second); time.Now().Before(quiet); {
		await(t, events, ":", proxyPatience)
	}
	happen("after a silence")

	var status struct{ Projects []struct{ ID string } }
	read(ask("GET", "/agent/status", nil), &status)
	var db struct{ ID string }
	read(ask("POST", "/databases", map[string]any{"project": status.Projects[0].ID, "name": "shop"}), &db)
	read(ask("POST", "/databases/"+db.ID+"/backups", nil), &struct{}{})
	var operations []struct{ ID string }
	read(ask("GET", "/operations?type=backup", nil), &operations)
	last := ""
	for line := range linesOf(ask("GET", "/operations/"+operations[0].ID+"/events", nil)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			last = data
		}
	}
	var operation struct{ Status string }
	if err := json.Unmarshal([]byte(last), &operation); err != nil || operation.Status != "completed" {
		t.Errorf("the operation's events end with %s", last)
	}
}

// linesOf returns the lines of a stream; the channel is closed at its end.
func linesOf(answer *http.Response) <-chan string {
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// await waits for a line that begins with a text.
func await(t *testing.T, lines <-chan string, prefix string, longest time.Duration) {
	t.Helper()
	timeout := time.After(longest)
	for {
		select {
		case line, open := <-lines:
			if !open {
				t.Fatal("the stream ended")
			}
			if strings.HasPrefix(line, prefix) {
				return
			}
		case <-timeout:
			t.Fatalf("no line %q within %s", prefix, longest)
		}
	}
}
