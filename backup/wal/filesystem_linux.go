package wal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve gives f its size and, where the file system can, its blocks: a full
// disk is found before WAL has been asked for.
func reserve(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(size)
	}
	return err
}
