package blobstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Reader reads one blob. It goes on reading the same bytes when the blob is
// removed or the store closed meanwhile. ReadAt may be called by many
// goroutines at once, Read and Seek by one. The caller closes it.
type Reader struct {
	file    *os.File
	size    int64
	modTime time.Time
}

var (
	_ io.ReadSeekCloser = (*Reader)(nil)
	_ io.ReaderAt       = (*Reader)(nil)
)

// Open opens a blob. It answers ErrNotFound, or ErrBadRef for a Ref that never
// was one.
func (s *Store) Open(ref Ref) (*Reader, error) {
	path, err := ref.path(s.blobs)
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open blob %s: %w", ref, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open blob %s: %w", ref, err), f.Close())
	}
	return &Reader{file: f, size: info.Size(), modTime: info.ModTime()}, nil
}

// Size returns the blob's size in bytes.
func (r *Reader) Size() int64 { return r.size }

// ModTime returns when the blob was written.
func (r *Reader) ModTime() time.Time { return r.modTime }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) { return r.file.Read(p) }

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) { return r.file.ReadAt(p, off) }

// Seek implements io.Seeker.
func (r *Reader) Seek(offset int64, whence int) (int64, error) { return r.file.Seek(offset, whence) }

// Content returns what to hand to http.ServeContent: the same bytes and
// position as the Reader, as an *os.File where the blob is a file, which lets
// the kernel send it (sendfile). It ends with the Reader; do not close it.
func (r *Reader) Content() io.ReadSeeker { return r.file }

// Close ends the Reader and its Content.
func (r *Reader) Close() error { return r.file.Close() }
