package objectstore

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
)

// fail returns the *Error of an act that failed, nil for nil.
func (d *directory) fail(act, key string, err error) error {
	if err == nil {
		return nil
	}
	if known := (*Error)(nil); errors.As(err, &known) {
		return err
	}
	remedy, kind := directoryKind(err)
	e := &Error{Act: act, Key: key, Store: d.String(), Kind: kind, Remedy: remedy}
	if kind != err {
		e.Detail = without(kind, err.Error())
	}
	return e
}

// directoryKind says which of this package's errors one of the operating system is,
// and what to do.
func directoryKind(err error) (remedy string, kind error) {
	is := func(codes ...error) bool {
		for _, c := range codes {
			if errors.Is(err, c) {
				return true
			}
		}
		return false
	}
	body := (*bodyError)(nil)
	switch {
	case errors.As(err, &body):
		return "", body.err
	case is(context.Canceled, context.DeadlineExceeded):
		return "", contextError(err)
	case is(ErrNoStore):
		return "mount the disk, or create the directory if it is the right one", ErrNoStore
	case is(ErrCorrupt):
		return "", ErrCorrupt
	case is(ErrUnsupported):
		return "", ErrUnsupported
	case is(fs.ErrExist):
		return "", ErrExists
	case is(syscall.ENOSPC, syscall.EDQUOT):
		return "free space on the disk, raise the quota, or prune", ErrFull
	case is(syscall.EROFS):
		return "the file system is mounted read-only: check the disk and mount it for writing", ErrDenied
	case is(fs.ErrPermission):
		return "give the directory to the user that holdfast runs as", ErrDenied
	case is(fs.ErrNotExist, syscall.ENOTDIR, syscall.EISDIR):
		return "", ErrNotFound
	case is(syscall.ENAMETOOLONG, syscall.ENOSYS, syscall.EOPNOTSUPP):
		return "use another file system", ErrUnsupported
	}
	return "check the disk and the system's log", ErrUnavailable
}
