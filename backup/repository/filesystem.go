package repository

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"holdfast/diskio"
)

// fileSystem is every call by which the repository changes the disk, and reads
// its files. They go through this seam so that tests can fail or end the
// process at the k-th, and have sectors that cannot be read.
type fileSystem interface {
	Open(path string) (reading, error)
	Mkdir(path string) error
	Create(path string) (file, error) // exclusive, for reading and writing
	OpenDir(path string) (handle, error)
	Rename(from, to string) error
	Remove(path string) error
}

// reading is an open file being read.
type reading interface {
	io.Reader
	io.ReaderAt
	Stat() (fs.FileInfo, error)
	Close() error
}

// handle is an open file or directory.
type handle interface {
	Sync() error
	Close() error
}

// file is an open file being written.
type file interface {
	diskio.File
	io.ReaderAt
	handle
}

type diskFile struct{ *os.File }

func (f diskFile) SetDirect(direct bool) error { return diskio.SetDirect(f.File, direct) }

// disk is the real fileSystem.
type disk struct{}

func (disk) Open(path string) (reading, error) { return os.Open(path) }

func (disk) Mkdir(path string) error { return os.Mkdir(path, 0o700) }

func (disk) Create(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

func (disk) OpenDir(path string) (handle, error) { return os.Open(path) }

func (disk) Rename(from, to string) error { return os.Rename(from, to) }

func (disk) Remove(path string) error { return os.Remove(path) }

// syncDir makes the names in the directory path durable.
func (r *Repository) syncDir(path string) error {
	d, err := r.fs.OpenDir(path)
	if err != nil {
		return fmt.Errorf("open directory to sync: %w", err)
	}
	return errors.Join(r.sync(d, path), d.Close())
}

// sync syncs an open file or directory. A failure is for good.
func (r *Repository) sync(h handle, path string) error {
	if err := h.Sync(); err != nil {
		err = fmt.Errorf("sync %s: %w", path, err)
		r.fail(err)
		return err
	}
	return nil
}
