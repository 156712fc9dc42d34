package cli_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// otherHost simulates another machine: a network namespace connected to this
// one by a veth pair.
type otherHost struct {
	t             *testing.T
	namespace     string
	here4, there4 string
	here6, there6 string
}

// newOtherHost creates the namespace. It needs root, as in CI.
func newOtherHost(t *testing.T) *otherHost {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making a network namespace takes root; CI runs this as root")
	}
	n, cable, far := layCable(t)
	h := &otherHost{
		t: t, namespace: fmt.Sprintf("hf%d-%d", n, os.Getpid()),
		here4: fmt.Sprintf("10.213.%d.1", n), there4: fmt.Sprintf("10.213.%d.2", n),
		here6: fmt.Sprintf("fd00:213:%d::1", n), there6: fmt.Sprintf("fd00:213:%d::2", n),
	}
	for _, command := range []string{
		"ip netns add " + h.namespace,
		"ip link set " + far + " netns " + h.namespace + " name far",
		"ip addr add " + h.here4 + "/24 dev " + cable,
		"ip addr add " + h.here6 + "/64 dev " + cable + " nodad",
		"ip link set " + cable + " up",
		"ip -n " + h.namespace + " addr add " + h.there4 + "/24 dev far",
		"ip -n " + h.namespace + " addr add " + h.there6 + "/64 dev far nodad",
		"ip -n " + h.namespace + " link set far up",
		"ip -n " + h.namespace + " link set lo up",
	} {
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", h.namespace).CombinedOutput(); err != nil {
			t.Errorf("remove namespace: %v: %s", err, out)
		}
	})
	return h
}

// layCable creates a veth pair with both ends here, and returns the number in
// their names: the owner of the pair may use the networks of that number.
func layCable(t *testing.T) (n int, here, far string) {
	t.Helper()
	var out []byte
	for n = range 256 {
		here, far = fmt.Sprintf("hf%da", n), fmt.Sprintf("hf%db", n)
		var err error
		out, err = exec.Command("ip", "link", "add", here, "type", "veth", "peer", "name", far).CombinedOutput()
		if err == nil {
			t.Cleanup(func() { _ = exec.Command("ip", "link", "del", here).Run() }) // usually gone with its other end
			return n, here, far
		}
		if !strings.Contains(string(out), "File exists") {
			break
		}
	}
	t.Fatalf("lay a cable: %s", out)
	return n, here, far
}

// connect tries the URL from the other host and returns the result.
func (h *otherHost) connect(url string) string {
	h.t.Helper()
	cmd := exec.Command("ip", "netns", "exec", h.namespace, os.Args[0])
	cmd.Env = append(os.Environ(), clientVariable+"="+url)
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("client on the other host: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// clientVariable makes the test binary a client of a database.
const clientVariable = "HOLDFAST_TEST_CLIENT"

// connectAndTell connects and prints how its session is encrypted, or the
// error.
func connectAndTell(url string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		fmt.Println("refused:", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	defer conn.Close(ctx)
	if _, ok := conn.PgConn().Conn().(*tls.Conn); ok {
		fmt.Println("tls")
		return
	}
	fmt.Println("clear")
}

func TestAllowlistAcrossTheNetwork(t *testing.T) {
	host := newOtherHost(t)
	m := newMachine(t)
	m.start("--postgres-listen", "127.0.0.1,"+host.here4+","+host.here6, "--public-host", host.here4)
	db := m.createDatabase("shop")
	url := m.connectionURL(db.ID)
	url6 := strings.Replace(url, host.here4, "["+host.here6+"]", 1)
	local := strings.Replace(url, host.here4, "127.0.0.1", 1)
	clear := func(u string) string { return strings.Replace(u, "sslmode=require", "sslmode=disable", 1) }
	allow := func(entries ...string) {
		t.Helper()
		m.must("PUT", "/databases/"+db.ID+"/allowlist", map[string]any{"entries": append([]string{}, entries...)}, nil)
	}
	expect := func(what, got, want string) {
		t.Helper()
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, not %s", what, got, want)
		}
	}
	expect("a new database from another host", host.connect(url), "refused")
	allow("127.0.0.1", host.there4)
	expect("an allowed host", host.connect(url), "tls")
	expect("an allowed host in the clear", host.connect(clear(url)), "refused")
	expect("an allowed host over IPv6", host.connect(url6), "refused")
	allow(netip.MustParsePrefix(host.there6+"/64").Masked().String(), "127.0.0.0/8")
	expect("IPv6", host.connect(url6), "tls")
	expect("IPv4 that is not allowed any more", host.connect(url), "refused")
	if got := query(t, clear(local), "select 1"); got != "1" {
		t.Errorf("loopback in the clear: %s", got)
	}
	allow("0.0.0.0/0", "::/0")
	expect("everybody", host.connect(url), "tls")
	expect("everybody in the clear", host.connect(clear(url)), "refused")
	super := strings.Replace(url, "//app:", "//holdfast:", 1)
	expect("the appliance's own role", host.connect(super), "refused")

	// A client that verifies everything, with the authority from the API.
	var c struct {
		CA string `json:"ca_certificate"`
	}
	m.must("GET", "/databases/"+db.ID+"/connection", nil, &c)
	if block, _ := pem.Decode([]byte(c.CA)); block == nil {
		t.Fatal("no certificate of the authority")
	}
	authority := filepath.Join(filepath.Dir(m.dataDir), "ca.pem")
	if err := os.WriteFile(authority, []byte(c.CA), 0o644); err != nil {
		t.Fatal(err)
	}
	full := strings.Replace(url, "sslmode=require", "sslmode=verify-full&sslrootcert="+authority, 1)
	expect("verify-full", host.connect(full), "tls")
	wrongName := strings.Replace(full, host.here4, "["+host.here6+"]", 1)
	expect("verify-full by an address in the certificate", host.connect(wrongName), "tls")

	allow()
	expect("nobody", host.connect(url), "refused")
}
