package durable

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// cannotClone are the errors of ioctl_ficlone(2) that say nothing against a copy of the file.
var cannotClone = []syscall.Errno{
	unix.EOPNOTSUPP, unix.ENOTTY, unix.ENOSYS, unix.EXDEV, unix.EINVAL, unix.ETXTBSY, unix.EAGAIN, unix.EBUSY, unix.EPERM,
}

// cloneFile makes the content of to share the blocks of from (FICLONE), or returns ErrCannotClone.
func cloneFile(from, to *os.File) error {
	for {
		err := unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
		var number syscall.Errno
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.As(err, &number) && slices.Contains(cannotClone, number):
			return fmt.Errorf("%w: %w", ErrCannotClone, err)
		}
		return &os.PathError{Op: "clone", Path: from.Name(), Err: err}
	}
}
