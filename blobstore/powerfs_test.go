package blobstore

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"holdfast/internal/durable"
)

// powerFS is the disk, and also what a power cut would leave: the synced bytes of each file, and the synced names of
// each directory. It is as strict as POSIX allows: nothing reaches the disk by itself.
type powerFS struct {
	durable.OS
	ignore func(kind, path string) bool // syncs that report success and do nothing
	before func(path string)            // called before a file is synced; may be nil

	mu      sync.Mutex
	live    map[string]map[string]*inode // by directory
	durable map[string]map[string]*inode
}

// inode is a file or, if dir is set, the directory with that path.
type inode struct {
	dir           string
	bytes, synced []byte
}

func newPowerFS(ignore func(kind, path string) bool) *powerFS {
	return &powerFS{ignore: ignore, live: map[string]map[string]*inode{}, durable: map[string]map[string]*inode{}}
}

func (p *powerFS) enter(path string, n *inode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dir := filepath.Dir(path)
	if p.live[dir] == nil {
		p.live[dir] = map[string]*inode{}
	}
	p.live[dir][filepath.Base(path)] = n
}

func (p *powerFS) leave(path string) *inode {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.live[filepath.Dir(path)][filepath.Base(path)]
	delete(p.live[filepath.Dir(path)], filepath.Base(path))
	return n
}

func (p *powerFS) Mkdir(path string) error {
	err := p.OS.Mkdir(path)
	if err == nil {
		p.enter(path, &inode{dir: path})
	}
	return err
}

func (p *powerFS) Create(path string) (durable.File, error) {
	f, err := p.OS.Create(path)
	if err != nil {
		return nil, err
	}
	n := &inode{}
	p.enter(path, n)
	return &powerFile{File: f, fs: p, path: path, inode: n}, nil
}

func (p *powerFS) Reopen(path string) (durable.File, error) {
	f, err := p.OS.Reopen(path)
	if err != nil {
		return nil, err
	}
	return &powerFile{File: f, fs: p, path: path, inode: p.find(path)}, nil
}

func (p *powerFS) OpenDir(path string) (durable.Handle, error) {
	d, err := p.OS.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return &powerDir{Handle: d, fs: p, path: path}, nil
}

func (p *powerFS) OpenFile(path string) (durable.Handle, error) {
	h, err := p.OS.OpenFile(path)
	if err != nil {
		return nil, err
	}
	return &powerHandle{Handle: h, fs: p, path: path, inode: p.find(path)}, nil
}

// find returns the inode of a file that another process created.
func (p *powerFS) find(path string) *inode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live[filepath.Dir(path)][filepath.Base(path)]
}

func (p *powerFS) Truncate(path string, size int64) error {
	err := p.OS.Truncate(path, size)
	if n := p.find(path); err == nil && n != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		n.bytes = n.bytes[:size:size]
	}
	return err
}

func (p *powerFS) Rename(from, to string) error {
	err := p.OS.Rename(from, to)
	if err == nil {
		p.enter(to, p.leave(from))
	}
	return err
}

func (p *powerFS) Link(from, to string) error {
	err := p.OS.Link(from, to)
	if err == nil {
		p.enter(to, p.find(from))
	}
	return err
}

func (p *powerFS) Remove(path string) error {
	err := p.OS.Remove(path)
	if err == nil {
		p.leave(path)
	}
	return err
}

// cut writes what a power cut would leave of the directory from to the directory to.
func (p *powerFS) cut(t *testing.T, from, to string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restore(t, from, to, func(n *inode) []byte { return n.synced })
}

// sector is the unit in bytes that a disk writes completely or not at all.
const sector = 512

// tear is cut for a disk that wrote a random subset of the sectors to be synced.
func (p *powerFS) tear(t *testing.T, from, to string, random *rand.Rand) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restore(t, from, to, func(n *inode) []byte {
		left := bytes.Clone(n.synced)
		if random.IntN(2) == 0 { // with the new size
			left = append(left, make([]byte, max(0, len(n.bytes)-len(left)))...)
		}
		for at := 0; at < len(left); at += sector {
			if random.IntN(2) == 0 {
				copy(left[at:min(at+sector, len(left))], n.bytes[min(at, len(n.bytes)):])
			}
		}
		return left
	})
}

func (p *powerFS) restore(t *testing.T, from, to string, content func(*inode) []byte) {
	t.Helper()
	for name, n := range p.durable[from] {
		path, err := filepath.Join(to, name), error(nil)
		if n.dir == "" {
			err = os.WriteFile(path, content(n), 0o600)
		} else if err = os.Mkdir(path, 0o700); err == nil {
			p.restore(t, n.dir, path, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

type powerFile struct {
	durable.File
	fs    *powerFS
	path  string
	inode *inode
}

// powerHandle is a file that is only synced.
type powerHandle struct {
	durable.Handle
	fs    *powerFS
	path  string
	inode *inode
}

func (h *powerHandle) Sync() error {
	h.fs.syncFile(h.path, h.inode)
	return nil
}

func (f *powerFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.fs.mu.Lock()
	f.inode.bytes = append(f.inode.bytes, b[:n]...)
	f.fs.mu.Unlock()
	return n, err
}

func (f *powerFile) WriteAt(b []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(b, offset)
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if missing := int(offset) + n - len(f.inode.bytes); missing > 0 {
		f.inode.bytes = append(f.inode.bytes, make([]byte, missing)...)
	}
	copy(f.inode.bytes[offset:], b[:n])
	return n, err
}

func (f *powerFile) Sync() error {
	f.fs.syncFile(f.path, f.inode)
	return nil
}

func (p *powerFS) syncFile(path string, n *inode) {
	if p.before != nil {
		p.before(path)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ignore("file", path) {
		n.synced = append([]byte(nil), n.bytes...)
	}
}

type powerDir struct {
	durable.Handle
	fs   *powerFS
	path string
}

func (d *powerDir) Sync() error {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if !d.fs.ignore("directory", d.path) {
		d.fs.durable[d.path] = maps.Clone(d.fs.live[d.path])
	}
	return nil
}

// adopt takes what is on the disk below dir for durable.
func (p *powerFS) adopt(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]*inode{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			names[e.Name()] = &inode{dir: path}
			p.adopt(t, path)
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		names[e.Name()] = &inode{bytes: content, synced: content}
	}
	p.live[dir], p.durable[dir] = names, maps.Clone(names)
}
