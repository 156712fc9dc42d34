package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// makeDataDir creates the data directory with mode 0700 if it is absent, and
// checks that it is writable. A full disk is no reason against a start: what
// needs no space continues on it, and the rest comes back once there is some.
func makeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	probe, err := os.CreateTemp(dir, "probe-")
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the data directory %s cannot be written by %s: %w", dir, currentUser(), err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// currentUser returns the effective user's name. user.Current would return a
// cached, earlier user.
func currentUser() string {
	uid := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return uid
}

// giveUpRoot permanently switches a root process to an ordinary user:
// PostgreSQL refuses to run as root, and nothing else needs it. After that, the
// process must not read what only root can, such as a checkout under /root.
func giveUpRoot(dataDir, name string) error {
	if os.Geteuid() != 0 {
		return checkOrdinary(name)
	}
	chosen, err := chooseAccount(dataDir, name, nil)
	if err != nil {
		return err
	}
	return leaveRoot(dataDir, chosen.account)
}

// giveUpRootOwning is giveUpRoot for a command that may create the data
// directory. It creates an absent one for the user and, if the system has no
// user holdfast, the user as well, through makeUser.
func giveUpRootOwning(dataDir, name string, log *slog.Logger) (choice, error) {
	if os.Geteuid() != 0 {
		return choice{}, checkOrdinary(name)
	}
	chosen, err := chooseAccount(dataDir, name, func() error { return makeUser(dataDir, log) })
	if err != nil {
		return choice{}, err
	}
	if err := handOver(dataDir, chosen.account); err != nil {
		return choice{}, err
	}
	return chosen, leaveRoot(dataDir, chosen.account)
}

// checkOrdinary checks that --user, if given, names the process's current user.
func checkOrdinary(name string) error {
	if name == "" {
		return nil
	}
	wanted, err := lookup(name)
	if err == nil && wanted.uid != os.Geteuid() {
		err = fmt.Errorf("--user %s: only root can become another user", name)
	}
	return err
}

func leaveRoot(dataDir string, to account) error {
	if err := become(to); err != nil {
		return fmt.Errorf("become user %s: %w", to.name, err)
	}
	return dropRootsEnvironment(dataDir)
}

// handOver makes the account the owner of the data directory. It also hands
// over an empty directory of root's, but does not touch one with content.
func handOver(dir string, to account) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the data directory: %w", err)
	}
	// Use the file handle from here on: if others may write in the parent, the
	// name may lead to /etc a moment later.
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("open the data directory: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	owner := ownerIn(info)
	if owner.uid == to.uid {
		return nil
	}
	if _, err := f.Readdirnames(1); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the data directory %s belongs to %s and is not empty: `chown -R %s %s`, or name another with --data-dir", dir, owner.name, to.name, dir)
	}
	if err := f.Chown(to.uid, to.gid); err != nil {
		return fmt.Errorf("hand the data directory to %s: %w", to.name, err)
	}
	return f.Chmod(0o700)
}

func become(a account) error {
	if err := syscall.Setgroups([]int{a.gid}); err != nil {
		return err
	}
	if err := syscall.Setgid(a.gid); err != nil {
		return err
	}
	return syscall.Setuid(a.uid)
}

// dropRootsEnvironment leaves root's working directory and replaces the
// variables that name root's home: child processes could not enter them.
func dropRootsEnvironment(dataDir string) error {
	if _, err := os.Stat(dataDir); err == nil {
		if err := os.Chdir(dataDir); err != nil {
			return fmt.Errorf("the data directory %s cannot be entered by %s; a parent directory may be closed to it: %w", dataDir, currentUser(), err)
		}
	}
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"} {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	if err := os.Setenv("HOME", dataDir); err != nil {
		return err
	}
	return allowInspection()
}
