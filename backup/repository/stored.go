package repository

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"holdfast/internal/durable"
)

// stored is a file of the repository open for reading. Data that the disk cannot read is damage, because a retry
// does not help, and the error names the file.
type stored struct {
	durable.Reader
	name string
	at   int64 // offset of Read
}

// openStored opens a file for reading. name is relative to the repository.
func (r *Repository) openStored(name string) (*stored, error) {
	f, err := r.fs.Open(r.path(name))
	if err != nil {
		return nil, lost(name, 0, err)
	}
	return &stored{Reader: f, name: name}, nil
}

// read reads a whole file.
func (r *Repository) read(name string) ([]byte, error) {
	f, err := r.openStored(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Read implements io.Reader.
func (s *stored) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.at += int64(n)
	return n, lost(s.name, s.at, err)
}

// ReadAt implements io.ReaderAt.
func (s *stored) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.Reader.ReadAt(p, off)
	return n, lost(s.name, off+int64(n), err)
}

// lost returns ErrDamaged if err means that the medium or the file system lost data, otherwise err. Lack of memory
// or descriptors is temporary.
func lost(name string, at int64, err error) error {
	errno, _ := errors.AsType[syscall.Errno](err)
	if errno == syscall.EIO || errno == syscall.EBADMSG || errno == errCorrupt {
		return damaged(name, fmt.Sprintf("byte %d cannot be read: %v", at, errno))
	}
	return err
}
