package cli

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// noOwnUser skips a test if the machine has the user or group holdfast.
func noOwnUser(t *testing.T) {
	t.Helper()
	_, person := user.Lookup(ownUser)
	_, group := user.LookupGroup(ownUser)
	if os.Geteuid() != 0 || person == nil || group == nil {
		t.Skip("only root makes users, and this machine may have no user holdfast")
	}
}

// programs returns a function that finds programs only in one directory.
func programs(dir string) func(string) (string, error) {
	return func(name string) (string, error) { return exec.LookPath(filepath.Join(dir, name)) }
}

func writeScript(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestAddUserWithUseradd lets the real useradd create the user, in a root
// directory of the test's own.
func TestAddUserWithUseradd(t *testing.T) {
	t.Parallel()
	noOwnUser(t)
	useradd, err := lookSystem("useradd")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"passwd", "shadow", "group", "gshadow"} {
		if err := os.WriteFile(filepath.Join(dir, "etc", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeScript(t, filepath.Join(dir, "useradd"), "exec "+useradd+" --prefix "+dir+` "$@"`)
	if err := addUser(rootDataDir, programs(dir), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"passwd": `^holdfast:x:[1-9]\d{2}:[1-9]\d{2}:[^:]*:/var/lib/holdfast:(/usr)?/sbin/nologin\n$`,
		"shadow": `^holdfast:!`, "group": `^holdfast:x:[1-9]\d{2}:\n$`,
	} {
		if text, err := os.ReadFile(filepath.Join(dir, "etc", name)); err != nil || !regexp.MustCompile(want).Match(text) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, rootDataDir)); err == nil {
		t.Error("the data directory was made, and not by the appliance")
	}
	// The second time the program refuses, and the error contains its message.
	if err := addUser(rootDataDir, programs(dir), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("twice: %v", err)
	}
}

// TestAddUserWithBusyBox checks that BusyBox's programs create group and user
// if there is nothing else; another adduser is not run.
func TestAddUserWithBusyBox(t *testing.T) {
	t.Parallel()
	noOwnUser(t)
	dir := t.TempDir()
	writeScript(t, filepath.Join(dir, "busybox"), `echo "${0##*/} $*" >>`+dir+"/ran")
	for _, name := range []string{"adduser", "addgroup"} {
		if err := os.Symlink("busybox", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := addUser(rootDataDir, programs(dir), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^addgroup -S holdfast\nadduser -S -D -H -h /var/lib/holdfast -s \S+ -G holdfast holdfast\n$`)
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err != nil || !want.Match(ran) {
		t.Errorf("%s, %v", ran, err)
	}
	other := t.TempDir()
	writeScript(t, filepath.Join(other, "adduser"), "touch "+other+"/ran")
	if err := addUser(rootDataDir, programs(other), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("there is nothing to make a user with")
	}
	if _, err := os.Stat(filepath.Join(other, "ran")); err == nil {
		t.Error("an adduser that is not BusyBox's was run")
	}
}

// TestMakeUserRefusesOtherDirectories checks that a user is created only for
// root's default data directory.
func TestMakeUserRefusesOtherDirectories(t *testing.T) {
	t.Parallel()
	sandbox, err := privateDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(t.TempDir(), "data"), rootDataDir + "2", sandbox} {
		if err := makeUser(dir, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), rootDataDir) {
			t.Fatalf("%s: %v", dir, err)
		}
	}
}

// TestChooseAccount checks that a user is created only if the data directory is
// absent and no user was named. If none can be created, the choice falls back
// and gives the reason.
func TestChooseAccount(t *testing.T) {
	t.Parallel()
	noOwnUser(t)
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs")
	if err := os.Mkdir(theirs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(theirs, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dataDir, named string
		asks, shared   bool
		reason         string
	}{
		"a new directory":      {filepath.Join(dir, "new"), "", true, true, "none was made: /etc is read-only"},
		"root's own":           {dir, "", false, true, "there is no user holdfast"},
		"another's":            {theirs, "", false, false, "it owns the data directory"},
		"another's, and named": {theirs, "nobody", false, false, "--user names it"},
		"a new one, and named": {filepath.Join(dir, "new"), "nobody", false, false, "--user names it"},
	} {
		asked := false
		chosen, err := chooseAccount(c.dataDir, c.named, func() error { asked = true; return errors.New("/etc is read-only") })
		if err != nil || chosen.name == "" || asked != c.asks || chosen.shared != c.shared || !strings.HasSuffix(chosen.reason, c.reason) {
			t.Errorf("%s: %+v, asked for a user: %t, %v", name, chosen, asked, err)
		}
	}
}

// TestOwnersGroup checks that the group of a data directory's owner comes from the user
// database, and that one without an entry there never gets root's group.
func TestOwnersGroup(t *testing.T) {
	t.Parallel()
	nobody, err := lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	const unknown = 2_000_000_001
	if _, err := user.LookupId(strconv.Itoa(unknown)); err == nil {
		t.Fatal("the uid has an entry")
	}
	for _, c := range []struct {
		uid, dirGID int
		want        account
	}{
		{nobody.uid, 0, nobody},
		{nobody.uid, 12345, nobody},
		{unknown, 0, account{name: strconv.Itoa(unknown), uid: unknown, gid: unknown}},
		{unknown, 12345, account{name: strconv.Itoa(unknown), uid: unknown, gid: 12345}},
		{0, 0, account{name: "root"}},
	} {
		if got := accountOf(c.uid, c.dirGID); got != c.want {
			t.Errorf("uid %d, group of the directory %d: %+v, want %+v", c.uid, c.dirGID, got, c.want)
		}
	}
}
