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
	Log(ctx context.Context, note []byte, value any) error
	Open(ref blobstore.Ref) (Reader, error)
	Remove(refs ...blobstore.Ref) error
	Walk(fn func(ref blobstore.Ref, size int64, modTime time.Time) error) error
	Close() error
}

// Opening is how the suite opens a store.
type Opening struct {
	// Dir is a directory the suite owns; the store is opened in it again and
	// again.
	Dir string
	// After and Deliver are those of blobstore.Options.
	After   blobstore.Position
	Deliver func([]blobstore.Entry)
}

// Writer is what blobstore.Writer offers.
type Writer interface {
	io.Writer
	CRC32C() uint32
	Commit() (blobstore.Ref, int64, error)
	Secure() (blobstore.Ref, error)
	Publish(note []byte, value any) (blobstore.Ref, error)
	Abort() error
}

// Reader is what blobstore.Reader offers.
type Reader interface {
	io.ReadSeekCloser
	io.ReaderAt
	Size() int64
	Verify(off, n int64) error
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
