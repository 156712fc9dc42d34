// Package faultfs injects faults into a store's file system, for tests: it fails chosen operations like a broken or
// full disk, kills the process at an operation, makes a byte unreadable, and counts operations.
package faultfs

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"holdfast/internal/durable"
)

// FS is the operating system's file system with faults. The zero value injects none and only counts. The verbs are
// mkdir, create, reopen, opendir, openfile, rename, link, truncate, remove, write, allocate, syncfile, syncdir,
// closefile and closedir; a rename or link has the path of the old name. Opening a file for reading does not count.
type FS struct {
	durable.OS
	Err    error // wrapped by the error of a failed operation
	Kill   bool  // kill the process with SIGKILL instead of failing
	NoSync bool  // skip real syncs, for tests without power cuts
	// Hit selects the operations that fail. Operations are numbered from 0. Set Hit before the first operation; Arm
	// replaces it later.
	Hit func(n int, verb, path string) bool
	// Unreadable returns an offset in the file that cannot be read and the error of reading it, which is nil if the
	// whole file can be read.
	Unreadable func(path string) (at int64, err error)

	mu    sync.Mutex
	n     int
	verbs map[string]int
	fired string
}

// FailNth fails the n-th operation, counted from 0.
func FailNth(n int, err error) *FS { return &FS{Err: err, Hit: nth(n)} }

// KillNth kills the process at the n-th operation, counted from 0.
func KillNth(n int) *FS { return &FS{Kill: true, Hit: nth(n)} }

func nth(n int) func(int, string, string) bool {
	return func(i int, _, _ string) bool { return i == n }
}

// FailVerb fails every operation with that verb while *on is true.
func FailVerb(verb string, on *bool, err error) *FS {
	return &FS{Err: err, Hit: func(_ int, v, _ string) bool { return *on && v == verb }}
}

// Arm selects other operations to fail, or none if hit is nil, and restarts the numbering from 0.
func (f *FS) Arm(hit func(n int, verb, path string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n, f.Hit = 0, hit
}

// Fired returns the last operation that failed as "verb path", or "".
func (f *FS) Fired() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// Operations returns the number of operations since the last Arm.
func (f *FS) Operations() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// Syncs returns the total number of syncs of files and directories.
func (f *FS) Syncs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.verbs["syncfile"] + f.verbs["syncdir"]
}

func (f *FS) try(verb, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.verbs == nil {
		f.verbs = map[string]int{}
	}
	f.verbs[verb]++
	f.n++
	if f.Hit == nil || !f.Hit(f.n-1, verb, path) {
		return nil
	}
	f.fired = verb + " " + path
	if f.Kill {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	}
	return fmt.Errorf("%s: injected: %w", f.fired, f.Err)
}

// Open implements durable.FS.
func (f *FS) Open(path string) (durable.Reader, error) {
	inner, err := f.OS.Open(path)
	if err != nil || f.Unreadable == nil {
		return inner, err
	}
	return &reader{Reader: inner, fs: f, path: path}, nil
}

// Mkdir implements durable.FS.
func (f *FS) Mkdir(path string) error {
	if err := f.try("mkdir", path); err != nil {
		return err
	}
	return f.OS.Mkdir(path)
}

// Create implements durable.FS.
func (f *FS) Create(path string) (durable.File, error) {
	return f.open("create", path, f.OS.Create)
}

// Reopen implements durable.FS.
func (f *FS) Reopen(path string) (durable.File, error) {
	return f.open("reopen", path, f.OS.Reopen)
}

func (f *FS) open(verb, path string, open func(string) (durable.File, error)) (durable.File, error) {
	if err := f.try(verb, path); err != nil {
		return nil, err
	}
	inner, err := open(path)
	if err != nil {
		return nil, err
	}
	return &file{inner, handle{f, inner, "file", path}}, nil
}

// OpenDir implements durable.FS.
func (f *FS) OpenDir(path string) (durable.Handle, error) {
	return f.openHandle("dir", path, f.OS.OpenDir)
}

// OpenFile implements durable.FS.
func (f *FS) OpenFile(path string) (durable.Handle, error) {
	return f.openHandle("file", path, f.OS.OpenFile)
}

func (f *FS) openHandle(kind, path string, open func(string) (durable.Handle, error)) (durable.Handle, error) {
	if err := f.try("open"+kind, path); err != nil {
		return nil, err
	}
	inner, err := open(path)
	if err != nil {
		return nil, err
	}
	return &handle{f, inner, kind, path}, nil
}

// Truncate implements durable.FS.
func (f *FS) Truncate(path string, size int64) error {
	if err := f.try("truncate", path); err != nil {
		return err
	}
	return f.OS.Truncate(path, size)
}

// Rename implements durable.FS.
func (f *FS) Rename(from, to string) error {
	if err := f.try("rename", from); err != nil {
		return err
	}
	return f.OS.Rename(from, to)
}

// RenameNew implements durable.FS.
func (f *FS) RenameNew(from, to string) error {
	if err := f.try("rename", from); err != nil {
		return err
	}
	return f.OS.RenameNew(from, to)
}

// Link implements durable.FS.
func (f *FS) Link(from, to string) error {
	if err := f.try("link", from); err != nil {
		return err
	}
	return f.OS.Link(from, to)
}

// Remove implements durable.FS.
func (f *FS) Remove(path string) error {
	if err := f.try("remove", path); err != nil {
		return err
	}
	return f.OS.Remove(path)
}
