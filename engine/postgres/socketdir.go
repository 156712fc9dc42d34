package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// longestSocket is the limit for the path of a Unix socket: sun_path has 108
// bytes on Linux, including the final NUL (unix(7)), and a few less on other
// systems.
const longestSocket = 103

// SocketDir creates and returns the private directory for the data directory's
// socket. It is dataDir/run if the socket's path fits, otherwise a directory
// below the system's temporary directory, named by the user and a hash of
// dataDir. SocketDir refuses a directory that another user could have created or
// could enter: the owner of the directory can answer in the server's place.
func SocketDir(dataDir string) (string, error) {
	dir := socketDir(dataDir, os.Geteuid())
	return dir, privateDir(dir)
}

// FindSocketDir returns the socket directory that the owner of dataDir created,
// for a process of another user, such as root. The error is os.ErrNotExist if
// there is none.
func FindSocketDir(dataDir string) (string, error) {
	info, err := os.Stat(dataDir)
	if err != nil {
		return "", fmt.Errorf("look at the data directory: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("the owner of the data directory %s is not known", dataDir)
	}
	dir := socketDir(dataDir, int(owner.Uid))
	return dir, checkPrivate(dir, int(owner.Uid))
}

func socketDir(dataDir string, uid int) string {
	dir := filepath.Join(dataDir, "run")
	if len(SocketPath(dir, 65535)) <= longestSocket {
		return dir
	}
	sum := sha256.Sum256([]byte(dataDir))
	name := "holdfast-" + strconv.Itoa(uid) + "-" + hex.EncodeToString(sum[:8])
	dir = filepath.Join(os.TempDir(), name)
	if len(SocketPath(dir, 65535)) > longestSocket {
		dir = filepath.Join("/tmp", name)
	}
	return dir
}

// SocketPath returns the path of the socket of the instance with that port.
func SocketPath(socketDir string, port int) string {
	return filepath.Join(socketDir, ".s.PGSQL."+strconv.Itoa(port))
}

// lastPrivatePort is the last number that was handed out.
var lastPrivatePort atomic.Uint32

// PrivatePort returns a number for a socket's name that no socket in the
// directory has. It is below 1024, where no instance with TCP is. Numbers are
// handed out in rotation, so the server of one caller has time to create its
// socket before another caller gets the same number.
func PrivatePort(socketDir string) (int, error) {
	for range 1023 {
		port := 1 + int(lastPrivatePort.Add(1)%1023)
		if _, err := os.Lstat(SocketPath(socketDir, port)); errors.Is(err, os.ErrNotExist) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free socket name in %s", socketDir)
}

// ClearSockets removes what killed servers left in a socket directory. A
// database's next start reuses its socket; that of a restore or a verification,
// which has a new name each time, would stay for good. No server may be starting
// there.
func ClearSockets(socketDir string) error {
	locks, err := filepath.Glob(filepath.Join(socketDir, ".s.PGSQL.*.lock"))
	for _, lock := range locks {
		err = errors.Join(err, clearSocket(strings.TrimSuffix(lock, ".lock")))
	}
	return err
}

// ClearSocket removes what the instance of a configuration has left in its socket directory, if it has ended.
func (c Config) ClearSocket() error { return clearSocket(SocketPath(c.SocketDir, c.Port)) }

// clearSocket removes a socket and its lock file if the process that created them
// has ended. PostgreSQL itself takes over a socket only if no process has the
// recorded number, so not while a zombie waits to be reaped.
func clearSocket(socket string) error {
	lock, err := readLockFile(socket + ".lock")
	if errors.Is(err, os.ErrNotExist) || err == nil && lock.pid > 0 && isPostmaster(lock.pid, lock.dir) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read lock of a socket: %w", err)
	}
	for _, path := range []string{socket, socket + ".lock"} { // the lock last: ClearSockets finds sockets by it
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove socket of a dead server: %w", err)
		}
	}
	return nil
}

// privateDir creates dir for this user alone, or checks that it is. Mkdir does
// not follow another user's link, and Lstat reveals it.
func privateDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make socket directory: %w", err)
	}
	return checkPrivate(dir, os.Geteuid())
}

func checkPrivate(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the socket directory: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("socket directory %s is not a directory", dir)
	case !ok || int(owner.Uid) != uid:
		return fmt.Errorf("socket directory %s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("socket directory %s is open to others (mode %04o)", dir, info.Mode().Perm())
	}
	return nil
}
