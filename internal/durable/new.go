package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteNew makes path hold what write writes, durably and all of it or none, if
// there is no file yet; otherwise the error wraps fs.ErrExist. It writes the file
// temporary, which does not exist and is on the same file system, and moves it.
// Several processes may publish one path, also over NFS: one of them succeeds.
func WriteNew(fsys FS, temporary, path string, write func(io.Writer) error) error {
	err := writeAndSync(fsys, temporary, write)
	if err == nil {
		err = fsys.RenameNew(temporary, path)
	}
	if err != nil {
		_ = fsys.Remove(temporary)
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	return SyncDir(fsys, filepath.Dir(path))
}

func writeAndSync(fsys FS, path string, write func(io.Writer) error) error {
	f, err := fsys.Create(path)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// RenameNew implements FS.
func (OS) RenameNew(from, to string) error {
	err := renameNoReplace(from, to)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return linkAndRemove(from, to)
}

// linkAndRemove renames without replacing where the kernel cannot, as on NFS. There
// a link whose answer was lost is tried again by the kernel and meets itself.
func linkAndRemove(from, to string) error {
	if err := os.Link(from, to); err != nil && !(errors.Is(err, fs.ErrExist) && sameFile(from, to)) {
		return err
	}
	return os.Remove(from)
}

func sameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}
