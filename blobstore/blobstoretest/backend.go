package blobstoretest

import (
	"context"
	"io"
	"time"

	"holdfast/blobstore"
)

// Backend is what blobstore.Store offers, for any implementation.
type Backend interface {
	Create(ctx context.Context) (Writer, error)
	Open(ref blobstore.Ref) (Reader, error)
	Remove(refs ...blobstore.Ref) error
	Walk(fn func(ref blobstore.Ref, size int64, modTime time.Time) error) error
	Close() error
}

// Writer is what blobstore.Writer offers.
type Writer interface {
	io.Writer
	CRC32C() uint32
	Commit() (blobstore.Ref, int64, error)
	Abort() error
}

// Reader is what blobstore.Reader offers.
type Reader interface {
	io.ReadSeekCloser
	io.ReaderAt
	Size() int64
	Content() io.ReadSeeker
}

// Of returns a Store as a Backend.
func Of(s *blobstore.Store) Backend { return store{s} }

type store struct{ *blobstore.Store }

func (s store) Create(ctx context.Context) (Writer, error) {
	w, err := s.Store.Create(ctx)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (s store) Open(ref blobstore.Ref) (Reader, error) {
	r, err := s.Store.Open(ref)
	if err != nil {
		return nil, err
	}
	return r, nil
}
