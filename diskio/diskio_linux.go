package diskio

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// SetDirect has writes to f go past the page cache (O_DIRECT), or not. Not
// every file system can.
func SetDirect(f *os.File, direct bool) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	flags &^= unix.O_DIRECT
	if direct {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	return err
}

// SyncData makes f's content durable, and of what else there is to it what
// reading needs: its size, but not when it was changed.
func SyncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
		return nil
	}
}

// SyncfsReports says whether syncfs(2) reports what could not be written, which
// Linux does since 5.8. Before, it promises nothing.
func SyncfsReports() bool {
	var name unix.Utsname
	return unix.Uname(&name) == nil && syncfsReports(unix.ByteSliceToString(name.Release[:]))
}

func syncfsReports(release string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return n == 2 && (major > 5 || major == 5 && minor >= 8)
}
