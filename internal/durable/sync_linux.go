package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// SetDirect makes writes to f bypass the page cache (O_DIRECT), or not. It fails if the file system does not support
// this.
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

// syncData makes f's content durable, with the metadata needed to read it, such as its size, but not its times.
func syncData(f *os.File) error {
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

// Sync makes everything below the directory durable with one syncfs, which writes the dirty pages of the file system in
// the best order; an fsync for each of a thousand small files would wait for the disk each time. If syncfs does not
// report write errors, Sync syncs each file.
func (t *Tree) Sync() error {
	if !SyncfsReports() {
		return SyncTree(t.dir.Name())
	}
	if err := unix.Syncfs(int(t.dir.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: t.dir.Name(), Err: err}
	}
	return nil
}

// SyncfsReports reports whether syncfs(2) returns an error if data could not be written, as on Linux since 5.8.
func SyncfsReports() bool {
	var name unix.Utsname
	return unix.Uname(&name) == nil && syncfsReports(unix.ByteSliceToString(name.Release[:]))
}

func syncfsReports(release string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return n == 2 && (major > 5 || major == 5 && minor >= 8)
}
