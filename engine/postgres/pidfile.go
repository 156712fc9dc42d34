package postgres

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pidFile is the content of postmaster.pid, whose lines PostgreSQL's pidfile.h
// (LOCK_FILE_LINE_*) numbers.
type pidFile struct {
	pid       int
	dir       string
	port      int
	socketDir string
	status    string // "starting", "ready", "standby", "stopping"
}

// accepting reports whether the postmaster accepts clients, at least for reading.
func (f pidFile) accepting() bool { return f.status == "ready" || f.status == "standby" }

// stopping reports whether the postmaster has been told to shut down.
func (f pidFile) stopping() bool { return f.status == "stopping" }

func pidFilePath(dir string) string { return filepath.Join(dir, "postmaster.pid") }

// readPIDFile reads dir's postmaster.pid; the error is os.ErrNotExist if there is
// none. It returns as much as a truncated file has, a pid of 0 if not even that.
func readPIDFile(dir string) (pidFile, error) { return readLockFile(pidFilePath(dir)) }

// readLockFile reads a postmaster.pid or the lock file of a socket, which begins
// with the same lines.
func readLockFile(path string) (pidFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return pidFile{}, err
	}
	lines := strings.Split(string(data), "\n")
	line := func(n int) string {
		if n > len(lines) {
			return ""
		}
		return strings.TrimSpace(lines[n-1])
	}
	pid, _ := strconv.Atoi(line(1))
	port, _ := strconv.Atoi(line(4))
	return pidFile{pid: max(pid, 0), dir: line(2), port: port, socketDir: line(5), status: line(8)}, nil
}
