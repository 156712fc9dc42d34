// Package durable changes files so that they survive a crash. It publishes whole files (temporary file, sync,
// rename, sync of the directory), which is how holdfast writes every file except those of its stores; locks a
// directory for one process; writes large files with direct I/O, so that they do not evict pages that are read again
// soon; and measures the disk usage of files.
//
// FS is the file system of the stores, which tests can replace: one interface for every call that changes the disk.
// OS implements it on the operating system; package faultfs injects faults.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// FS has every call by which a store changes the disk, and Open for reads that can fail in tests. Tests replace it
// to fail or kill the process at the n-th call, to count syncs, and to lose unsynced data.
type FS interface {
	Open(path string) (Reader, error)
	Mkdir(path string) error
	Create(path string) (File, error)     // with mode 0600; fails with fs.ErrExist if the file exists
	Reopen(path string) (File, error)     // opens an existing file for writing
	OpenDir(path string) (Handle, error)  // to be synced
	OpenFile(path string) (Handle, error) // to be synced
	Rename(from, to string) error
	RenameNew(from, to string) error // fails with fs.ErrExist if to exists
	Link(from, to string) error      // gives a file a second name
	Truncate(path string, size int64) error
	Remove(path string) error // a file or an empty directory
}

// Reader is a file open for reading.
type Reader interface {
	io.Reader
	io.ReaderAt
	Stat() (fs.FileInfo, error)
	Close() error
}

// Handle is an open file or directory. Sync makes its content durable, with the metadata needed to read it back.
type Handle interface {
	Sync() error
	Close() error
}

// File is a file open for writing.
type File interface {
	DirectWriterAt
	io.ReaderAt // only for a file from Create, not Reopen
	// Allocate sets the size of the file and reserves its blocks if the file system supports that, so that a full
	// disk is reported before any write.
	Allocate(size int64) error
	// Discard gives back the disk space of size bytes at offset at, which become zeros. It returns errors.ErrUnsupported
	// where the file system cannot.
	Discard(at, size int64) error
	Chmod(mode fs.FileMode) error // sets the mode regardless of the umask
	Handle
}

// OS is the FS of the operating system.
type OS struct{}

// Open implements FS.
func (OS) Open(path string) (Reader, error) { return os.Open(path) }

// Mkdir implements FS.
func (OS) Mkdir(path string) error { return os.Mkdir(path, 0o700) }

// Create implements FS.
func (OS) Create(path string) (File, error) {
	return openFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Reopen implements FS.
func (OS) Reopen(path string) (File, error) { return openFile(path, os.O_WRONLY) }

// OpenDir implements FS.
func (OS) OpenDir(path string) (Handle, error) { return os.Open(path) }

// OpenFile implements FS.
func (OS) OpenFile(path string) (Handle, error) { return os.Open(path) }

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Link implements FS.
func (OS) Link(from, to string) error { return os.Link(from, to) }

// Truncate implements FS.
func (OS) Truncate(path string, size int64) error { return os.Truncate(path, size) }

// Remove implements FS.
func (OS) Remove(path string) error { return os.Remove(path) }

type osFile struct{ *os.File }

func openFile(path string, flags int) (File, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (f osFile) Sync() error { return syncData(f.File) }

func (f osFile) SetDirect(direct bool) error { return SetDirect(f.File, direct) }

func (f osFile) Allocate(size int64) error { return allocate(f.File, size) }

func (f osFile) Discard(at, size int64) error { return discard(f.File, at, size) }

// ErrSync means that a sync failed. The unsynced data may be lost, although the kernel reports success for another
// attempt.
var ErrSync = errors.New("sync failed")

// SyncDir makes the names in a directory durable.
func SyncDir(fsys FS, path string) error {
	d, err := fsys.OpenDir(path)
	if err != nil {
		return fmt.Errorf("open directory to sync: %w", err)
	}
	err = syncHandle(d)
	if err := errors.Join(err, d.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", path, err)
	}
	return nil
}

func syncHandle(h Handle) error {
	if err := h.Sync(); err != nil {
		return fmt.Errorf("%w: %w", ErrSync, err)
	}
	return nil
}

// EnsureDir creates a directory if it is missing, and makes its name durable. It syncs the parent in either case: an
// earlier attempt may have ended between creating the directory and syncing its parent.
func EnsureDir(fsys FS, path string) error {
	if err := fsys.Mkdir(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(fsys, filepath.Dir(path))
}
