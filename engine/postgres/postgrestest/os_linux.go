package postgrestest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// stayDumpable undoes a side effect of changing the user, after which /proc/self
// belongs to root.
func stayDumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep /proc/self readable: %w", err)
	}
	return nil
}

// dupForever returns a descriptor of f that no finalizer closes, and that
// children do not inherit.
func dupForever(f *os.File) int {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return int(f.Fd())
	}
	return fd
}

// leftovers kills the PostgreSQL processes that work below dir, and lists them.
func leftovers(dir string) []string {
	entries, _ := os.ReadDir("/proc")
	var found []string
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		proc := filepath.Join("/proc", entry.Name())
		exe, _ := os.Readlink(filepath.Join(proc, "exe"))
		cwd, _ := os.Readlink(filepath.Join(proc, "cwd"))
		if filepath.Base(exe) != "postgres" || !strings.HasPrefix(cwd, dir+"/") {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		found = append(found, fmt.Sprintf("%d: %s", pid, bytes.TrimSpace(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '}))))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return found
}
