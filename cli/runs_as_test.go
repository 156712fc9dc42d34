package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
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

// TestServeHasItsUsersGroup starts as root with a directory that root made for a user:
// neither the appliance nor its files have root's group.
func TestServeHasItsUsersGroup(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root becomes another user")
	}
	owner, err := user.Lookup("postgres") // whose uid and gid differ
	if err != nil {
		owner, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(owner.Uid)
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	m.initdb = true // the directory must not come from the template
	if err := errors.Join(os.Mkdir(m.dataDir, 0o700), os.Chown(m.dataDir, uid, 0)); err != nil {
		t.Fatal(err)
	}
	m.start("--warm", "0")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{"Gid": strings.Repeat(`\t`+owner.Gid, 4), "Groups": `\t` + owner.Gid + ` ?`} {
		if !regexp.MustCompile(`(?m)^` + field + `:` + want + `$`).Match(status) {
			t.Errorf("%s is not the group %s of %s alone:\n%s", field, owner.Gid, owner.Username, status)
		}
	}
	m.stop()
	made, err := os.ReadDir(m.dataDir)
	if err != nil || len(made) == 0 {
		t.Fatal(made, err)
	}
	for _, entry := range made {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if gid := info.Sys().(*syscall.Stat_t).Gid; strconv.Itoa(int(gid)) != owner.Gid {
			t.Errorf("%s has the group %d", entry.Name(), gid)
		}
	}
}
