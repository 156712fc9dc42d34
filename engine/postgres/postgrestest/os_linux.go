package postgrestest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

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

// leftoverPatience is how long processes that end by themselves are waited for: a
// server's logger ends after its postmaster has.
const leftoverPatience = 5 * time.Second

// leftovers kills the PostgreSQL processes that work below dir, and lists them.
func leftovers(dir string) []string {
	found := processesBelow(dir)
	for began := time.Now(); len(found) > 0 && time.Since(began) < leftoverPatience; found = processesBelow(dir) {
		time.Sleep(10 * time.Millisecond)
	}
	var said []string
	for pid, command := range found {
		said = append(said, fmt.Sprintf("%d: %s", pid, command))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return said
}

// processesBelow returns the command lines of the PostgreSQL processes that work below dir, by pid.
func processesBelow(dir string) map[int]string {
	entries, _ := os.ReadDir("/proc")
	found := map[int]string{}
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
		found[pid] = string(bytes.TrimSpace(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
	}
	return found
}
