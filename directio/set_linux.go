package directio

import (
	"os"

	"golang.org/x/sys/unix"
)

// Set has writes to f go past the page cache (O_DIRECT), or not. Not every
// file system can.
func Set(f *os.File, direct bool) error {
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
