package blobstore

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"holdfast/internal/durable"
)

// directFS is a disk with configurable support for direct I/O.
type directFS struct {
	durable.OS
	set    error // error of SetDirect
	write  error // error of a direct write
	part   int   // bytes that it writes nevertheless
	direct int   // number of direct writes tried
}

type directFile struct {
	durable.File
	fs *directFS
	on bool
}

func (d *directFS) Create(path string) (durable.File, error) {
	f, err := d.OS.Create(path)
	return &directFile{File: f, fs: d}, err
}

func (f *directFile) SetDirect(direct bool) error {
	if direct && f.fs.set != nil {
		return f.fs.set
	}
	f.on = direct
	return nil
}

func (f *directFile) Write(p []byte) (int, error) { return f.write(p, f.File.Write) }

func (f *directFile) WriteAt(p []byte, at int64) (int, error) {
	if f.on && at%durable.Align != 0 {
		return 0, errors.New("a direct write that does not begin a page")
	}
	return f.write(p, func(p []byte) (int, error) { return f.File.WriteAt(p, at) })
}

func (f *directFile) write(p []byte, write func([]byte) (int, error)) (int, error) {
	if f.on {
		f.fs.direct++
		if f.fs.write != nil {
			n, err := write(p[:f.fs.part])
			return n, errors.Join(err, f.fs.write)
		}
		if len(p)%durable.Align != 0 {
			return 0, errors.New("a direct write that is not round")
		}
	}
	return write(p)
}

// directFSs returns disks with and without support for direct writes.
func directFSs() map[string]*directFS {
	return map[string]*directFS{
		"direct": {}, "refuses": {set: syscall.EINVAL}, "rounder": {write: syscall.EINVAL}, "in part": {write: syscall.EINVAL, part: 1000},
	}
}

// TestReadFrom writes blobs of sizes around the inline limit and the block size, on disks with and without direct
// writes.
func TestReadFrom(t *testing.T) {
	random := make([]byte, 3*blockSize+5)
	rand.Read(random)
	all := map[string]durable.FS{"disk": durable.OS{}}
	for name, fs := range directFSs() {
		all[name] = fs
	}
	for name, fs := range all {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, t.TempDir(), Options{fs: fs})
			for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, blockSize - 1, blockSize, blockSize + 1, 2 * blockSize, len(random)} {
				for _, before := range []int{0, 7, durable.Align, 64 << 10} {
					content := random[:max(size, before)]
					if got, err := throughReadFrom(t, s, content[:before], iotest.HalfReader(bytes.NewReader(content[before:]))); err != nil || !bytes.Equal(got, content) {
						t.Errorf("%d bytes behind %d: %d are read back, %v", len(content)-before, before, len(got), err)
					}
				}
			}
			if d, ok := fs.(*directFS); ok && (d.direct > 0) != (d.set == nil) {
				t.Errorf("%d direct writes", d.direct)
			}
		})
	}
}

func throughReadFrom(t *testing.T, s *Store, before []byte, r io.Reader) ([]byte, error) {
	t.Helper()
	w, err := s.Create(t.Context())
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	if _, err := w.Write(before); err != nil {
		return nil, err
	}
	if _, err := w.ReadFrom(r); err != nil {
		return nil, err
	}
	ref, size, err := w.Commit()
	if err != nil {
		return nil, err
	}
	read, err := s.Open(t.Context(), ref)
	if err != nil {
		return nil, err
	}
	defer read.Close()
	got, err := io.ReadAll(read)
	if err == nil && size != int64(len(got)) {
		err = fmt.Errorf("Commit says %d bytes", size)
	}
	return got, err
}

// TestReadFromFails ends a blob whose source ends early: the source's error is returned, and nothing is left.
func TestReadFromFails(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	w, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cut := errors.New("cut")
	size, err := w.ReadFrom(io.MultiReader(bytes.NewReader(make([]byte, blockSize+9)), iotest.ErrReader(cut)))
	if !errors.Is(err, cut) || size != blockSize {
		t.Errorf("read %d bytes, %v", size, err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	mustHold(t, s, nil, "nothing")
}

// TestPageWriter writes pieces of all sizes in sequence, like the journal: the file has everything flushed each
// time, followed only by zeros.
func TestPageWriter(t *testing.T) {
	for name, fs := range directFSs() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			f, err := fs.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			w := pageWriter{file: f, buffer: durable.NewBuffer(4 * durable.Align)}
			var want []byte
			for _, size := range []int{0, 1, 80, durable.Align - 81, durable.Align, 1, 3*durable.Align - 1, 100, 4 * durable.Align, 9*durable.Align + 7} {
				piece := make([]byte, size)
				rand.Read(piece)
				want = append(want, piece...)
				if err := errors.Join(w.write(piece), w.flush()); err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
				got, err := os.ReadFile(path)
				if err != nil || len(got) < len(want) || !bytes.Equal(got[:len(want)], want) || len(bytes.Trim(got[len(want):], "\x00")) > 0 {
					t.Fatalf("after %d bytes more the file has %d, not those %d that were written, %v", size, len(got), len(want), err)
				}
			}
			if (fs.direct > 0) != (fs.set == nil) {
				t.Errorf("%d direct writes", fs.direct)
			}
		})
	}
}

// TestJournalOnAnyDisk reads the journal again, after a shutdown and after a kill, with and without support for
// direct I/O.
func TestJournalOnAnyDisk(t *testing.T) {
	for name, fs := range directFSs() {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			s := openStore(t, dir, Options{fs: fs, SegmentSize: 64 << 10})
			contents := map[Ref]string{}
			for size := range 60 {
				content := strings.Repeat(string(rune('a'+size%26)), size*97)
				ref, err := publish(t, s, content)
				if err != nil {
					t.Fatal(err)
				}
				contents[ref] = content
				mustRead(t, s, ref, content, "at once")
			}
			killed := filepath.Join(t.TempDir(), "killed")
			if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			s.Close()
			for _, dir := range []string{dir, killed} {
				var notes []string
				s := openStore(t, dir, Options{Deliver: collect(&notes)})
				if len(notes) != len(contents) {
					t.Errorf("%d notes are replayed, of %d", len(notes), len(contents))
				}
				for ref, content := range contents {
					mustRead(t, s, ref, content, "again")
				}
			}
		})
	}
}
