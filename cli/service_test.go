package cli_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestServiceManagerIsTold checks the notifications to systemd: ready when
// clients are served, stopping when the shutdown starts.
func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	path := filepath.Join(filepath.Dir(m.dataDir), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	m.env = append(m.env, "NOTIFY_SOCKET="+path)
	expect := func(want string) {
		t.Helper()
		if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 256)
		n, err := socket.Read(buffer)
		if err != nil || string(buffer[:n]) != want {
			t.Fatalf("%q, %v, want %q", buffer[:n], err, want)
		}
	}
	m.start()
	expect("READY=1")
	m.stop()
	expect("STOPPING=1")
}

// TestUnit checks that systemd finds no fault in the unit.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	text, err := os.ReadFile("../deploy/holdfast.service")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^ExecStart=.* --no-first-key$`).Match(text) {
		t.Error("the first key goes to the journal, for whoever reads it")
	}
	unit := filepath.Join(t.TempDir(), "holdfast.service")
	here := strings.ReplaceAll(string(text), "/usr/bin/holdfast", program)
	if err := os.WriteFile(unit, []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), "holdfast.service") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestExampleConfig checks that the example has every setting, with its
// default.
func TestExampleConfig(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/holdfast.toml")
	if err != nil {
		t.Fatal(err)
	}
	settings := regexp.MustCompile(`(?m)^# ([a-z0-9_]+ = |\[)`).ReplaceAllString(string(text), "$1")
	file := filepath.Join(t.TempDir(), "holdfast.toml")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	if stdout, stderr, _ := m.run("", "doctor", "--config", file); !strings.Contains(stdout, "postgresql") {
		t.Errorf("%s%s", stdout, stderr)
	}
	help, _, _ := m.run("", "serve", "--help")
	for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z0-9-]+)(.*)$`).FindAllStringSubmatch(help, -1) {
		name, usage := strings.ReplaceAll(flag[1], "-", "_"), flag[2]
		switch name {
		case "help", "config", "data_dir", "user", "no_first_key": // set by the unit, or useless in the file
			continue
		}
		line := regexp.MustCompile(`(?m)^` + name + ` = (\S+)`).FindStringSubmatch(settings)
		if line == nil {
			t.Errorf("%s is not in the example", name)
			continue
		}
		if value := regexp.MustCompile(`\(default (?:\[)?"?([^\s")\]]+)`).FindStringSubmatch(usage); value != nil && !sameValue(line[1], value[1]) {
			t.Errorf("%s: the example says %s, the default is %s", name, line[1], value[1])
		}
	}
}

// sameValue compares a value in TOML with one in a flag's usage.
func sameValue(toml, usage string) bool {
	toml = strings.NewReplacer(`"`, "", "[", "", "]", "").Replace(toml)
	if toml == usage {
		return true
	}
	a, err := time.ParseDuration(toml)
	b, err2 := time.ParseDuration(usage)
	return err == nil && err2 == nil && a == b
}
