package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is a user the appliance can run as.
type account struct {
	name     string
	uid, gid int
}

// makeDataDir makes the data directory with mode 0700 when it is absent, and
// checks that it can be written.
func makeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	probe, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return fmt.Errorf("the data directory %s cannot be written by %s: %w", dir, currentUser(), err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// currentUser is not user.Current, which remembers who the process was first.
func currentUser() string {
	uid := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return uid
}

// giveUpRoot makes this process an ordinary user for good when it is root:
// PostgreSQL refuses to run as root, and nothing else needs it. From then on
// nothing may be read that only root can, such as a checkout under /root. With
// create, a data directory that is absent is made for that user.
func giveUpRoot(dataDir, name string, create bool) error {
	if uid := os.Geteuid(); uid != 0 {
		if name == "" {
			return nil
		}
		wanted, err := lookup(name)
		if err == nil && wanted.uid != uid {
			err = fmt.Errorf("--user %s: only root can become another user", name)
		}
		return err
	}
	target, err := chooseAccount(dataDir, name)
	if err != nil {
		return err
	}
	if create {
		if err := handOver(dataDir, target); err != nil {
			return err
		}
	}
	if err := become(target); err != nil {
		return fmt.Errorf("become user %s: %w", target.name, err)
	}
	return settleIn(dataDir)
}

// chooseAccount picks whom to become: who was asked for, else the owner of
// the data directory, else holdfast, which the Debian package makes and nothing
// else runs as, else postgres, else nobody.
func chooseAccount(dataDir, name string) (account, error) {
	owner, owned, err := ownerOf(dataDir)
	if err != nil {
		return account{}, err
	}
	if name != "" {
		wanted, err := lookup(name)
		if err == nil && owned && owner.uid != 0 && owner.uid != wanted.uid {
			err = fmt.Errorf("--user %s: the data directory %s belongs to %s", name, dataDir, owner.name)
		}
		return wanted, err
	}
	if owned && owner.uid != 0 {
		return owner, nil
	}
	for _, candidate := range []string{"holdfast", "postgres", "nobody"} {
		if found, err := lookup(candidate); err == nil {
			return found, nil
		}
	}
	return account{}, errors.New("run as root, and there is no user holdfast, postgres or nobody to become: name one with --user")
}

func lookup(name string) (account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return account{}, usageError{fmt.Errorf("--user %s: %w", name, err)}
	}
	found := account{name: name}
	if found.uid, err = strconv.Atoi(u.Uid); err != nil {
		return found, fmt.Errorf("--user %s: %w", name, err)
	}
	if found.gid, err = strconv.Atoi(u.Gid); err != nil {
		return found, fmt.Errorf("--user %s: %w", name, err)
	}
	if found.uid == 0 {
		return found, usageError{fmt.Errorf("--user %s: PostgreSQL does not run as root: name another user", name)}
	}
	return found, nil
}

func ownerOf(dir string) (_ account, found bool, _ error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return account{}, false, nil
	}
	if err != nil {
		return account{}, false, fmt.Errorf("look at the data directory: %w", err)
	}
	return ownerIn(info), true, nil
}

func ownerIn(info fs.FileInfo) account {
	stat := info.Sys().(*syscall.Stat_t)
	owner := account{name: strconv.Itoa(int(stat.Uid)), uid: int(stat.Uid), gid: int(stat.Gid)}
	if u, err := user.LookupId(owner.name); err == nil {
		owner.name = u.Username
	}
	return owner
}

// handOver makes the data directory the account's. An empty one that root
// made is handed over too; one with content is not touched.
func handOver(dir string, to account) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the data directory: %w", err)
	}
	// By its handle from here on: where others may write in the parent, the
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

// settleIn leaves the directory and the environment of root behind: child
// processes must not stumble over a working directory they cannot enter.
func settleIn(dataDir string) error {
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
