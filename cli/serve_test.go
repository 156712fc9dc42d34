package cli_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

func TestServeAnnouncesItselfAndEndsCleanly(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	if m.key == "" || m.setup == "" {
		t.Errorf("the first start gave key %t and set-up link %t", m.key != "", m.setup != "")
	}
	db := m.createDatabase("shop")
	if db.Status != "available" {
		t.Errorf("database: %+v", db)
	}
	m.stop()
	if left := m.processes(); len(left) > 0 {
		t.Errorf("still running after the end: %v", left)
	}
	key := m.key
	m.key = ""
	m.start()
	if m.key != "" {
		t.Error("the second start gave out a key")
	}
	m.key = key
	testenv.Eventually(t, "the database's return", func() bool {
		m.must("GET", "/databases/"+db.ID, nil, &db)
		return db.Status == "available"
	})
}

func TestServeIgnoresTheEnvironmentOfClients(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.env = []string{"PGSERVICE=nothing", "PGHOST=192.0.2.1", "PGSSLMODE=nonsense", "PGPORT=x"}
	m.start()
	if db := m.createDatabase("shop"); db.Status != "available" {
		t.Errorf("database: %+v", db)
	}
}

func TestServeWithoutFirstKey(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--no-first-key")
	if m.key != "" {
		t.Error("there is a key all the same")
	}
}

// TestFirstStartThatFails checks that the first successful start is the first
// start.
func TestFirstStartThatFails(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	start := []string{"serve", "--data-dir", m.dataDir, "--listen", m.listen, "--postgres-ports", m.ports, "--warm", "0"}
	expectRefusal(t, 1, "/nowhere", append(start, "--postgres-bin", "/nowhere")...)
	expectRefusal(t, 1, "/no.crt", append(start, "--tls-cert", "/no.crt", "--tls-key", "/no.key")...)
	m.start()
	if m.key == "" || m.setup == "" {
		t.Fatalf("it gave key %t and set-up link %t", m.key != "", m.setup != "")
	}
	m.must("GET", "/databases", nil, nil)
}

// TestKilledBeforeTheKeyIsShown checks that a start that ends before it shows
// the first key is followed by one that shows a new key, and that the old key
// is not valid.
func TestKilledBeforeTheKeyIsShown(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close() // the first write ends it
	defer write.Close()
	first := exec.Command(program, "serve", "--data-dir", m.dataDir, "--listen", m.listen, "--postgres-ports", m.ports, "--warm", "0")
	first.Stdout, first.Stderr = write, m.log
	_ = first.Run() // its exit code is checked
	if status := first.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGPIPE {
		t.Fatalf("the first start: %v", first.ProcessState)
	}
	m.start()
	if m.key == "" || m.setup == "" {
		t.Fatalf("it gave key %t and set-up link %t", m.key != "", m.setup != "")
	}
	var keys []struct {
		Name      string
		RevokedAt *time.Time `json:"revoked_at"`
	}
	m.must("GET", "/account/api-keys", nil, &keys)
	if len(keys) != 2 || keys[0].RevokedAt != nil || keys[1].RevokedAt == nil {
		t.Errorf("the keys, newest first: %+v", keys)
	}
	m.stop()
	shown := m.key
	m.key = ""
	m.start()
	if m.key != "" {
		t.Error("a key that was shown was replaced")
	}
	m.key = shown
	m.must("GET", "/databases", nil, nil)
}

// TestServeRefuses starts appliances that cannot work, and expects one line, an
// exit code, and no change.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	absent := filepath.Join(filepath.Dir(m.dataDir), "absent")
	newer := newerDataDir(t, m)
	file := filepath.Join(filepath.Dir(m.dataDir), "empty.toml")
	if err := os.WriteFile(file, []byte(`listen = ""`), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		says string
		code int
	}{
		"port taken":      {[]string{"--data-dir", absent, "--listen", taken.Addr().String()}, "address already in use", 1},
		"second serve":    {[]string{"--data-dir", m.dataDir, "--listen", "127.0.0.1:0"}, "another holdfast is using", 1},
		"newer format":    {[]string{"--data-dir", newer, "--listen", "127.0.0.1:0"}, "use a newer holdfast", 1},
		"not a directory": {[]string{"--data-dir", "/dev/null/x", "--listen", "127.0.0.1:0"}, "data directory", 1},
		"open to all":     {[]string{"--data-dir", absent, "--listen", "0.0.0.0:0"}, "--insecure-http", 2},
		"bad ports":       {[]string{"--data-dir", absent, "--postgres-ports", "80-90"}, "postgres-ports", 2},
		"no such flag":    {[]string{"--data-dri", absent}, "unknown flag", 2},
		"bad log format":  {[]string{"--data-dir", absent, "--log-format", "xml"}, "log-format", 2},
		"no address":      {[]string{"--data-dir", absent, "--listen", ""}, "host:port", 2},
		"none in a file":  {[]string{"--data-dir", absent, "--config", file}, "host:port", 2},
	} {
		t.Run(name, func(t *testing.T) {
			before := digest(t, newer)
			expectRefusal(t, c.code, c.says, append([]string{"serve"}, c.args...)...)
			if digest(t, newer) != before {
				t.Error("files were changed")
			}
			if _, err := os.Stat(absent); err == nil {
				t.Error("a data directory was made")
			}
		})
	}
	m.must("GET", "/databases", nil, nil)
}

// expectRefusal runs the program, and expects one line and an exit code.
func expectRefusal(t *testing.T, code int, says string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != code {
		t.Errorf("exit: %v, not %d", err, code)
	}
	text := strings.TrimSpace(string(out))
	if !strings.Contains(text, says) || strings.Count(text, "\n") > 0 {
		t.Errorf("it said: %s", text)
	}
}

// newerDataDir creates a data directory of a later format.
func newerDataDir(t *testing.T, m *machine) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(m.dataDir), "newer")
	other := *m
	other.dataDir, other.listen, other.process = dir, freeAddress(t), nil
	other.start()
	other.stop()
	setFormat(t, filepath.Join(dir, "holdfast.db"), 99)
	return dir
}

func digest(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		sum.Write([]byte(path))
		sum.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func TestInterruptEndsEverything(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.createDatabase("shop")
	if err := m.process.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-m.exited:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(applianceTime):
		t.Fatal("did not end")
	}
	m.process = nil
	if left := m.processes(); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

func TestKilledApplianceIsAdopted(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	db := m.createDatabase("shop")
	before := m.processes()
	m.kill()
	m.start()
	testenv.Eventually(t, "the adoption", func() bool {
		m.must("GET", "/databases/"+db.ID, nil, &db)
		return db.Status == "available"
	})
	adopted := false
	for _, now := range m.processes() {
		for _, pid := range before {
			adopted = adopted || now == pid && pid != m.process.Process.Pid
		}
	}
	if !adopted {
		t.Error("the instance was started anew instead of adopted")
	}
}
