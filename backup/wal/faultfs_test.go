package wal

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
)

// faultFS is the disk with a fault: the operation that hit selects fails with
// err.
type faultFS struct {
	disk
	err error
	hit func(n int, verb string) bool

	mu    sync.Mutex
	n     int
	fired string
}

func (f *faultFS) try(verb, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.hit == nil || !f.hit(f.n-1, verb) {
		return nil
	}
	f.fired = verb + " " + filepath.Base(path)
	return fmt.Errorf("%s: injected: %w", f.fired, f.err)
}

func (f *faultFS) Mkdir(path string) error {
	return errors.Join(f.try("mkdir", path), f.disk.Mkdir(path))
}

func (f *faultFS) Create(path string, size int64) (file, error) {
	if err := f.try("create", path); err != nil {
		return nil, err
	}
	inner, err := f.disk.Create(path, size)
	return &faultFile{inner, f, path}, err
}

func (f *faultFS) Open(path string) (file, error) {
	if err := f.try("open", path); err != nil {
		return nil, err
	}
	inner, err := f.disk.Open(path)
	return &faultFile{inner, f, path}, err
}

func (f *faultFS) SyncDir(path string) error {
	if err := f.try("syncdir", path); err != nil {
		return err
	}
	return nil // no test here loses what was not synced
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.try("rename", to); err != nil {
		return err
	}
	return f.disk.Rename(from, to)
}

func (f *faultFS) Remove(path string) error {
	if err := f.try("remove", path); err != nil {
		return err
	}
	return f.disk.Remove(path)
}

type faultFile struct {
	file
	fs   *faultFS
	path string
}

// WriteAt writes half when it fails, as a full disk does.
func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.try("write", f.path); err != nil {
		n, _ := f.file.WriteAt(p[:len(p)/2], off)
		return n, err
	}
	return f.file.WriteAt(p, off)
}

func (f *faultFile) Sync() error {
	if err := f.fs.try("sync", f.path); err != nil {
		return err
	}
	return nil
}
