package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServeSaysWhoItRunsAs starts as root where a user could be created: with a
// given data directory none is, and one line of the log says which user it
// switched to and why.
func TestServeSaysWhoItRunsAs(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root becomes another user")
	}
	m := newMachine(t)
	m.initdb = true // the data directory must not be there
	dir := filepath.Dir(m.dataDir)
	for _, name := range []string{"useradd", "adduser"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\ntouch "+dir+"/made\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.env = append(m.env, "PATH="+dir+":"+os.Getenv("PATH"))
	said := func(args ...string) (lines []string) {
		m.log = &lockedBuffer{}
		m.start(append(args, "--warm", "0")...)
		m.stop()
		for line := range strings.Lines(m.log.String()) {
			if strings.Contains(line, "msg=\"runs as") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	expect := func(lines []string, wants ...string) {
		t.Helper()
		for _, want := range append(wants, "--user", "user=") {
			if len(lines) != 1 || !strings.Contains(lines[0], want) {
				t.Errorf("not one line with %q: %q", want, lines)
			}
		}
	}
	if first := said(); !strings.Contains(strings.Join(first, ""), "user=holdfast ") { // a package may have created it
		expect(first, "level=WARN", "there is no user holdfast, and none was made: the data directory is not /var/lib/holdfast")
	}
	expect(said(), "level=INFO", "it owns the data directory")
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("a user was made")
	}
	m.dataDir += "2"
	expect(said("--user", "nobody"), "level=INFO", "user=nobody", "--user names it")
}
