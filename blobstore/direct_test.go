package blobstore

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"testing/iotest"

	"holdfast/diskio"
)

// directFS is the disk, whose files are written past the page cache as it
// says.
type directFS struct {
	disk
	set    error // what SetDirect answers
	write  error // what writing so answers
	part   int   // how much it writes nevertheless
	direct int   // how often that was tried
}

type directFile struct {
	file
	fs *directFS
	on bool
}

func (d *directFS) Create(path string) (file, error) {
	f, err := d.disk.Create(path)
	return &directFile{file: f, fs: d}, err
}

func (f *directFile) SetDirect(direct bool) error {
	if direct && f.fs.set != nil {
		return f.fs.set
	}
	f.on = direct
	return nil
}

func (f *directFile) Write(p []byte) (int, error) {
	if f.on {
		f.fs.direct++
		if f.fs.write != nil {
			n, err := f.file.Write(p[:f.fs.part])
			return n, errors.Join(err, f.fs.write)
		}
		if len(p)%diskio.Align != 0 {
			return 0, errors.New("a direct write that is not round")
		}
	}
	return f.file.Write(p)
}

// TestReadFrom writes blobs of sizes around what is inlined and what is
// written at a time, on disks that can write directly, and others.
func TestReadFrom(t *testing.T) {
	random := make([]byte, 3*blockSize+5)
	rand.Read(random)
	for name, fs := range map[string]fileSystem{
		"disk": disk{}, "direct": &directFS{}, "refuses": &directFS{set: syscall.EINVAL}, "rounder": &directFS{write: syscall.EINVAL},
		"in part": &directFS{write: syscall.EINVAL, part: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, t.TempDir(), Options{fs: fs})
			for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, blockSize - 1, blockSize, blockSize + 1, 2 * blockSize, len(random)} {
				for _, before := range []int{0, 7, diskio.Align, 64 << 10} {
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
	read, err := s.Open(ref)
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

// TestReadFromFails ends a blob whose source ends early: what the source says
// is answered, and nothing is left.
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
