package durable

import (
	"errors"
	"io"
	"os"
)

// ErrCannotClone means that a file system cannot share the blocks of a file with a copy of it.
var ErrCannotClone = errors.New("the file system cannot clone files")

// CanClone reports whether the file system of a directory can clone files. It creates two files there and removes them.
func CanClone(dir string) bool {
	from, err := os.CreateTemp(dir, "clone-*"+NewSuffix)
	if err != nil {
		return false
	}
	defer removeTemp(from)
	to, err := os.CreateTemp(dir, "clone-*"+NewSuffix)
	if err != nil {
		return false
	}
	defer removeTemp(to)
	if _, err := from.Write(make([]byte, Align)); err != nil {
		return false
	}
	return cloneFile(from, to) == nil
}

func removeTemp(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// CloneOrCopy makes to, an empty file on the same file system, a copy of from. The two share the blocks of the file
// where the file system can do that; a file that it cannot clone now, such as one that ZFS has not written yet, is
// copied.
func CloneOrCopy(from, to *os.File) error {
	err := cloneFile(from, to)
	if !errors.Is(err, ErrCannotClone) {
		return err
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return err
}
