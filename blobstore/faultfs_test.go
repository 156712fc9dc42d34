package blobstore

import (
	"fmt"
	"sync"
)

// faultFS is the disk with a fault: the operation that hit selects fails with
// err. It also counts.
type faultFS struct {
	disk
	err error
	hit func(n int, verb, path string) bool

	mu    sync.Mutex
	n     int
	verbs map[string]int
	fired string // the operation that failed
}

// failNth fails the n-th operation, counted from 0.
func failNth(n int, err error) *faultFS {
	return &faultFS{err: err, hit: func(i int, _, _ string) bool { return i == n }}
}

// failVerb fails every operation of that name while *on.
func failVerb(verb string, on *bool, err error) *faultFS {
	return &faultFS{err: err, hit: func(_ int, v, _ string) bool { return *on && v == verb }}
}

func (f *faultFS) try(verb, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.verbs == nil {
		f.verbs = map[string]int{}
	}
	f.verbs[verb]++
	f.n++
	if f.hit == nil || !f.hit(f.n-1, verb, path) {
		return nil
	}
	f.fired = verb + " " + path
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

func (f *faultFS) Reopen(path string) (file, error) {
	if err := f.try("reopen", path); err != nil {
		return nil, err
	}
	inner, err := f.disk.Reopen(path)
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

func (f *faultFS) OpenFile(path string) (handle, error) {
	if err := f.try("openfile", path); err != nil {
		return nil, err
	}
	inner, err := f.disk.OpenFile(path)
	if err != nil {
		return nil, err
	}
	return &faultHandle{f, inner, "file", path}, nil
}

func (f *faultFS) Truncate(path string, size int64) error {
	if err := f.try("truncate", path); err != nil {
		return err
	}
	return f.disk.Truncate(path, size)
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.try("rename", from); err != nil {
		return err
	}
	return f.disk.Rename(from, to)
}

func (f *faultFS) Link(from, to string) error {
	if err := f.try("link", from); err != nil {
		return err
	}
	return f.disk.Link(from, to)
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

func (f *faultFile) WriteAt(p []byte, offset int64) (int, error) {
	if err := f.fs.try("write", f.path); err != nil {
		n, _ := f.inner.WriteAt(p[:len(p)/2], offset)
		return n, err
	}
	return f.inner.WriteAt(p, offset)
}
