package repository

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// faultFS is the disk with a fault: the operation that hit selects fails with
// err, or ends the process.
type faultFS struct {
	disk
	err  error
	kill bool // SIGKILL instead of err
	hit  func(n int, verb, path string) bool
	bad  func(path string) (at int64, err error) // a byte that cannot be read, and what is said then

	mu    sync.Mutex
	n     int
	fired string // the operation that failed
}

// failNth fails the n-th operation, counted from 0.
func failNth(n int, err error) *faultFS {
	return &faultFS{err: err, hit: func(i int, _, _ string) bool { return i == n }}
}

func (f *faultFS) try(verb, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.hit == nil || !f.hit(f.n-1, verb, path) {
		return nil
	}
	f.fired = verb + " " + path
	if f.kill {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return fmt.Errorf("%s %s: injected: %w", verb, path, f.err)
}

func (f *faultFS) Mkdir(path string) error {
	if err := f.try("mkdir", path); err != nil {
		return err
	}
	return f.disk.Mkdir(path)
}

func (f *faultFS) Create(path string) (file, error) {
	if err := f.try("create", path); err != nil {
		return nil, err
	}
	inner, err := f.disk.Create(path)
	if err != nil {
		return nil, err
	}
	return &faultFile{faultHandle{f, inner, "file", path}, inner}, nil
}

func (f *faultFS) OpenDir(path string) (handle, error) {
	if err := f.try("opendir", path); err != nil {
		return nil, err
	}
	inner, err := f.disk.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return &faultHandle{f, inner, "dir", path}, nil
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.try("rename", from); err != nil {
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

type faultHandle struct {
	fs    *faultFS
	inner handle
	kind  string
	path  string
}

func (h *faultHandle) Sync() error {
	if err := h.fs.try("sync"+h.kind, h.path); err != nil {
		return err
	}
	return h.inner.Sync()
}

// Close closes even when it fails, as close(2) does.
func (h *faultHandle) Close() error {
	err := h.fs.try("close"+h.kind, h.path)
	if closeErr := h.inner.Close(); err == nil {
		err = closeErr
	}
	return err
}

type faultFile struct {
	faultHandle
	inner file
}

// Write writes half when it fails, as a full disk does.
func (f *faultFile) Write(p []byte) (int, error) {
	if err := f.fs.try("write", f.path); err != nil {
		n, _ := f.inner.Write(p[:len(p)/2])
		return n, err
	}
	return f.inner.Write(p)
}

func (f *faultFile) SetDirect(direct bool) error { return f.inner.SetDirect(direct) }

func (f *faultFile) ReadAt(p []byte, off int64) (int, error) { return f.inner.ReadAt(p, off) }

func (f *faultFS) Open(path string) (reading, error) {
	inner, err := f.disk.Open(path)
	if err != nil || f.bad == nil {
		return inner, err
	}
	return &faultReading{reading: inner, fs: f, path: path}, nil
}

// faultReading is a file of which a byte may be unreadable.
type faultReading struct {
	reading
	fs   *faultFS
	path string
	at   int64
}

func (s *faultReading) Read(p []byte) (int, error) {
	n, err := s.ReadAt(p, s.at)
	s.at += int64(n)
	return n, err
}

// ReadAt reads up to what cannot be read, as pread(2) does.
func (s *faultReading) ReadAt(p []byte, off int64) (int, error) {
	at, err := s.fs.bad(s.path)
	if err == nil || at < off || at >= off+int64(len(p)) {
		return s.reading.ReadAt(p, off)
	}
	n, readErr := s.reading.ReadAt(p[:at-off], off)
	if readErr != nil {
		return n, readErr
	}
	return n, fmt.Errorf("read %s: injected: %w", s.path, err)
}
