package faultfs

import (
	"fmt"

	"holdfast/internal/durable"
)

// handle is an open file or directory whose sync and close may fail.
type handle struct {
	fs    *FS
	inner durable.Handle
	kind  string
	path  string
}

// Sync implements durable.Handle.
func (h *handle) Sync() error {
	if err := h.fs.try("sync"+h.kind, h.path); err != nil || h.fs.NoSync {
		return err
	}
	return h.inner.Sync()
}

// Close closes the file even if it fails, like close(2).
func (h *handle) Close() error {
	err := h.fs.try("close"+h.kind, h.path)
	if closeErr := h.inner.Close(); err == nil {
		err = closeErr
	}
	return err
}

// file is a file whose writes may also fail.
type file struct {
	durable.File
	handle handle
}

func (f *file) Sync() error  { return f.handle.Sync() }
func (f *file) Close() error { return f.handle.Close() }

// Write writes half of p if it fails, like a full disk.
func (f *file) Write(p []byte) (int, error) {
	return f.write(p, f.File.Write)
}

// WriteAt writes half of p if it fails, like Write.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	return f.write(p, func(p []byte) (int, error) { return f.File.WriteAt(p, off) })
}

func (f *file) write(p []byte, write func([]byte) (int, error)) (int, error) {
	if err := f.handle.fs.try("write", f.handle.path); err != nil {
		n, _ := write(p[:len(p)/2])
		return n, err
	}
	return write(p)
}

// Allocate changes nothing if it fails.
func (f *file) Allocate(size int64) error {
	if err := f.handle.fs.try("allocate", f.handle.path); err != nil {
		return err
	}
	return f.File.Allocate(size)
}

// Discard changes nothing if it fails.
func (f *file) Discard(at, size int64) error {
	if err := f.handle.fs.try("discard", f.handle.path); err != nil {
		return err
	}
	return f.File.Discard(at, size)
}

// reader is a file with a byte that may be unreadable.
type reader struct {
	durable.Reader
	fs   *FS
	path string
	at   int64
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.ReadAt(p, r.at)
	r.at += int64(n)
	return n, err
}

// ReadAt reads up to the unreadable byte, like pread(2).
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	at, err := r.fs.Unreadable(r.path)
	if err == nil || at < off || at >= off+int64(len(p)) {
		return r.Reader.ReadAt(p, off)
	}
	n, readErr := r.Reader.ReadAt(p[:at-off], off)
	if readErr != nil {
		return n, readErr
	}
	return n, fmt.Errorf("read %s: injected: %w", r.path, err)
}
