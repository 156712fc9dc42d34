package postgrestest

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// becomeOrdinary creates the run's temporary directory and, as root, switches to
// the user postgres, or else nobody.
func becomeOrdinary() (tmp string, err error) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		if uid, gid, err = ordinaryUser(); err != nil {
			return "", err
		}
	}
	base := sharedTemp()
	if tmp, err = os.MkdirTemp(base, "hf"); err != nil {
		return "", fmt.Errorf("make temporary directory: %w", err)
	}
	if os.Geteuid() == 0 {
		if err := giveUpRoot(tmp, uid, gid); err != nil {
			return "", err
		}
	}
	return tmp, setEnvironment(base, tmp)
}

// ordinaryUser picks the user that root becomes.
func ordinaryUser() (uid, gid int, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		return uid, gid, nil
	}
	return 0, 0, fmt.Errorf("give up root: there is neither a user postgres nor nobody")
}

func giveUpRoot(tmp string, uid, gid int) error {
	if err := os.Chown(tmp, uid, gid); err != nil {
		return fmt.Errorf("give up root: %w", err)
	}
	if err := keepOutputs(uid, gid); err != nil {
		return fmt.Errorf("give up root: %w", err)
	}
	for _, step := range []error{syscall.Setgroups([]int{gid}), syscall.Setgid(gid), syscall.Setuid(uid)} {
		if step != nil {
			return fmt.Errorf("give up root: %w", step)
		}
	}
	return stayDumpable()
}

// sharedTemp returns a temporary directory that every user can reach, with a path
// short enough for sockets.
func sharedTemp() string {
	dir := os.TempDir()
	for d := dir; ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil || info.Mode().Perm()&0o001 == 0 || len(dir) > 40 {
			return "/tmp"
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}

// setEnvironment points everything that writes at the run's own directory, except
// the cache, which holds downloads and which all runs of a user share.
func setEnvironment(base, tmp string) error {
	cache := filepath.Join(base, "holdfast-cache-"+strconv.Itoa(os.Geteuid()))
	if dir, err := os.UserCacheDir(); err == nil && os.MkdirAll(filepath.Join(dir, cacheName), 0o700) == nil {
		cache = dir
	} else if err := ownDir(cache); err != nil {
		return err
	}
	for name, value := range map[string]string{"TMPDIR": tmp, "HOME": tmp, "XDG_CACHE_HOME": cache, "XDG_DATA_HOME": filepath.Join(tmp, "data")} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// ownDir creates dir, or checks that no other user has access: programs in it are
// run.
func ownDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the cache %s is not this user's alone: remove it", dir)
	}
	return nil
}
