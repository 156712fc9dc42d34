package blobstore

import (
	"os"

	"holdfast/diskio"
)

// fileSystem is every call by which the store changes the disk. The store
// makes them through this seam so that tests can fail the k-th of them, count
// the syncs, and lose what was not synced.
type fileSystem interface {
	Mkdir(path string) error
	Create(path string) (file, error) // exclusive, for writing
	Reopen(path string) (file, error) // one that is there, for writing
	OpenDir(path string) (handle, error)
	OpenFile(path string) (handle, error) // to be synced
	Rename(from, to string) error
	Link(from, to string) error // gives a file another name
	Truncate(path string, size int64) error
	Remove(path string) error // a file or an empty directory
}

// handle is an open file or directory. Sync makes durable what was written to
// it, and what reading that needs.
type handle interface {
	Sync() error
	Close() error
}

// file is an open file being written.
type file interface {
	diskio.FileAt
	handle
}

// disk is the real fileSystem.
type disk struct{}

func (disk) Mkdir(path string) error { return os.Mkdir(path, 0o700) }

func (disk) Create(path string) (file, error) {
	return openDiskFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
}

func (disk) Reopen(path string) (file, error) { return openDiskFile(path, os.O_WRONLY) }

func openDiskFile(path string, flags int) (file, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

type diskFile struct{ *os.File }

func (f diskFile) Sync() error { return diskio.SyncData(f.File) }

func (f diskFile) SetDirect(direct bool) error { return diskio.SetDirect(f.File, direct) }

func (disk) OpenDir(path string) (handle, error) { return os.Open(path) }

func (disk) OpenFile(path string) (handle, error) { return os.Open(path) }

func (disk) Truncate(path string, size int64) error { return os.Truncate(path, size) }

func (disk) Rename(from, to string) error { return os.Rename(from, to) }

func (disk) Link(from, to string) error { return os.Link(from, to) }

func (disk) Remove(path string) error { return os.Remove(path) }
