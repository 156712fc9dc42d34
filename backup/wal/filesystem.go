package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/diskio"
)

// fileSystem is every call by which the archive changes the disk. It makes
// them through this seam so that tests can fail the k-th of them.
type fileSystem interface {
	Mkdir(path string) error
	// Create creates a file, which must not exist, and reserves size bytes.
	Create(path string, size int64) (file, error)
	// Open opens a file that is there to be written to.
	Open(path string) (file, error)
	SyncDir(path string) error
	Rename(from, to string) error
	Remove(path string) error
}

// file is an open file being written. Sync makes its content durable.
type file interface {
	WriteAt(p []byte, off int64) (int, error)
	Sync() error
	Close() error
}

// disk is the real fileSystem.
type disk struct{}

func (disk) Mkdir(path string) error { return os.Mkdir(path, 0o700) }

func (disk) Create(path string, size int64) (file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if size > 0 {
		if err := reserve(f, size); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(path))
		}
	}
	return diskFile{f}, nil
}

func (disk) Open(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

type diskFile struct{ *os.File }

func (f diskFile) Sync() error { return diskio.SyncData(f.File) }

func (disk) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (disk) Rename(from, to string) error { return os.Rename(from, to) }

func (disk) Remove(path string) error { return os.Remove(path) }

// newSuffix ends the names of files being written.
const newSuffix = ".new"

// publish makes path hold what write writes, all of it or what was there
// before, and durably.
func publish(fsys fileSystem, path string, size int64, write func(file) error) error {
	temp := path + newSuffix
	err := writeDurably(fsys, temp, size, write)
	if err == nil {
		err = fsys.Rename(temp, path)
	}
	if err != nil {
		_ = fsys.Remove(temp)
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	if err := fsys.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("publish %s: sync its directory: %w", filepath.Base(path), err)
	}
	return nil
}

func writeDurably(fsys fileSystem, path string, size int64, write func(file) error) error {
	if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(path, size)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func publishBytes(fsys fileSystem, path string, content ...[]byte) error {
	return publish(fsys, path, 0, func(f file) error {
		var at int64
		for _, part := range content {
			if _, err := f.WriteAt(part, at); err != nil {
				return err
			}
			at += int64(len(part))
		}
		return nil
	})
}
