package cli_test

import (
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/cli/doctor"
)

// examine runs `doctor` on the machine and returns its findings by check.
func (m *machine) examine(wantCode int, args ...string) map[string]doctor.Finding {
	m.t.Helper()
	stdout, stderr, code := m.run("", append([]string{"doctor", "--json", "--listen", m.listen, "--postgres-ports", m.ports}, args...)...)
	if code != wantCode {
		m.t.Errorf("exit code %d, not %d: %s%s", code, wantCode, stdout, stderr)
	}
	var found []doctor.Finding
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		m.t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	gravest := map[string]doctor.Finding{}
	for _, f := range found {
		if f.Level != doctor.OK && f.Remedy == "" {
			m.t.Errorf("no remedy: %+v", f)
		}
		if _, seen := gravest[f.Check]; !seen || f.Level == doctor.Problem {
			gravest[f.Check] = f
		}
	}
	return gravest
}

func expectFinding(t *testing.T, found map[string]doctor.Finding, check string, level doctor.Level, words string) {
	t.Helper()
	if f := found[check]; f.Level != level || !strings.Contains(f.Detail+f.Remedy, words) {
		t.Errorf("%s: %+v, want %s with %q", check, f, level, words)
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	fresh := m.examine(0)
	for _, check := range []string{"postgresql", "pg_dump", "API address", "database ports", "open files", "leftovers"} {
		expectFinding(t, fresh, check, doctor.OK, "")
	}
	if _, err := os.Stat(m.dataDir); err == nil {
		t.Error("doctor made the data directory")
	}

	taken, err := net.Listen("tcp", m.listen)
	if err != nil {
		t.Fatal(err)
	}
	expectFinding(t, m.examine(1), "API address", doctor.Problem, "--listen")
	for check, flag := range map[string]string{"objects address": "--objects-listen", "S3 address": "--s3-listen", "metrics address": "--metrics-listen"} {
		expectFinding(t, m.examine(1, flag, m.listen), check, doctor.Problem, flag)
	}
	taken.Close()
	expectFinding(t, m.examine(1, "--metrics-listen", m.listen), "metrics address", doctor.Problem, "in use")
	expectFinding(t, m.examine(1, "--postgres-bin", "/nonexistent"), "postgresql", doctor.Problem, "--postgres-bin")

	expectFinding(t, m.examine(1, "--postgres-listen", "192.0.2.1"), "database ports", doctor.Problem, "--postgres-listen")
	expectFinding(t, m.examine(1, "--tls-cert", "/nonexistent", "--tls-key", "/nonexistent"), "certificate", doctor.Problem, "--tls-cert")
	expectFinding(t, m.examine(1, "--webhook-url", "http://127.0.0.1:9", "--webhook-secret-file", "/nonexistent/secret"),
		"webhook secret", doctor.Problem, "--webhook-secret-file")
	expectUnmakeable(t, m)
	expectRootsPort(t, m)

	m.start()
	m.createDatabase("shop")
	expectFinding(t, m.examine(0), "API address", doctor.OK, "running")
	m.kill()
	expectFinding(t, m.examine(0), "leftovers", doctor.Warning, "1 databases run without")

	key := filepath.Join(m.dataDir, "secret.key")
	for _, c := range []struct {
		check, words string
		breakIt, fix func() error
	}{
		{"file permissions", "chmod 0600", func() error { return os.Chmod(key, 0o644) }, func() error { return os.Chmod(key, 0o600) }},
		{"data directory", "one is missing", func() error { return os.Rename(key, key+".away") }, func() error { return os.Rename(key+".away", key) }},
	} {
		if err := c.breakIt(); err != nil {
			t.Fatal(err)
		}
		expectFinding(t, m.examine(1), c.check, doctor.Problem, c.words)
		if err := c.fix(); err != nil {
			t.Fatal(err)
		}
	}
	m.start()
	expectFinding(t, m.examine(0), "leftovers", doctor.OK, "none")
}

// expectUnmakeable checks a data directory in a closed place: closed to the
// user who starts the appliance or, for root, to the user it switches to.
func expectUnmakeable(t *testing.T, m *machine) {
	t.Helper()
	mode, words := fs.FileMode(0o500), "cannot be made"
	if os.Geteuid() == 0 {
		mode, words = 0o700, "parent directories"
	}
	closed := filepath.Join(filepath.Dir(m.dataDir), "closed")
	if err := os.Mkdir(closed, mode); err != nil {
		t.Fatal(err)
	}
	other := *m
	other.dataDir = filepath.Join(closed, "data")
	expectFinding(t, other.examine(1), "data directory", doctor.Problem, words)
}

// expectRootsPort checks that root binds a privileged port before it switches
// users.
func expectRootsPort(t *testing.T, m *machine) {
	t.Helper()
	const address = "127.0.0.7:443"
	l, err := net.Listen("tcp", address)
	if err != nil {
		return // the appliance could not either
	}
	l.Close()
	expectFinding(t, m.examine(0, "--listen", address), "API address", doctor.OK, "free")
}
