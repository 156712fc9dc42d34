package blobstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"holdfast/internal/durable"
)

// Reader reads one blob, even if the blob is removed or the store is closed meanwhile. Read, Next and ReadAt return
// ErrDamaged instead of bytes that differ from what was written. ReadAt and Verify are safe for concurrent use, the
// others are not. The caller must close the Reader.
type Reader struct {
	size    int64
	modTime time.Time
	small   []byte  // the bytes of a blob in the journal, not nil; nil if it is a file
	record  *[]byte // the pooled buffer that contains small
	file    *os.File
	remote  *remote // of a blob that is away

	ref      Ref   // of a file
	changed  int64 // when the file was changed last, 0 if the system does not say
	verified *verified

	offset int64           // of the next Read
	block  *durable.Buffer // what Next read: of a file, a verified block
	number int64           // number of that block, -1 if there is none
}

var (
	_ io.ReadSeekCloser = (*Reader)(nil)
	_ io.ReaderAt       = (*Reader)(nil)
)

// Open opens a blob. It returns ErrNotFound, ErrBadRef for a malformed Ref, or ErrDamaged for a small blob whose bytes
// differ from what was written. The bytes of one that is away are fetched when they are read, for as long as ctx lasts;
// reading returns ErrAway if they cannot be. After ReadCopy the same holds for a file that is here and damaged, but what cannot be
// fetched is read here then, and an error has a CopyError.
func (s *Store) Open(ctx context.Context, ref Ref) (*Reader, error) {
	if at, ok := ref.position(); ok {
		return s.openSmall(ref, at)
	}
	if !s.fetches.isDamaged(ref) {
		r, err := s.openFile(ref)
		if !errors.Is(err, ErrNotFound) {
			return r, err
		}
	}
	a, awayErr := s.away.find(ref)
	switch {
	case errors.Is(awayErr, ErrNotFound):
		return s.openFile(ref) // it may have come since
	case awayErr != nil:
		return nil, fmt.Errorf("open blob %s: %w", ref, awayErr)
	}
	return &Reader{size: a.Size, remote: s.openRemote(ctx, a)}, nil
}

func (s *Store) openFile(ref Ref) (*Reader, error) {
	path, err := ref.path(s.blobs)
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	f, err := os.OpenFile(path, openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open blob %s: %w", ref, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	r, err := newFileReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open blob %s: %w", ref, err), f.Close())
	}
	r.ref, r.verified = ref, s.verified
	return r, nil
}

func newFileReader(f *os.File) (*Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if err := checkFooter(f, info.Size()); err != nil {
		return nil, err
	}
	return &Reader{file: f, size: contentSize(info.Size()), modTime: info.ModTime(), changed: changedAt(info), number: -1}, nil
}

// openSmall reads a whole blob of the journal.
func (s *Store) openSmall(ref Ref, at Position) (*Reader, error) {
	var h header
	var blob []byte
	buf := records.Get().(*[]byte)
	err := s.journal.reads.read(at.Segment(), s.journal.path(at.Segment()), func(f *os.File) (err error) {
		// The position is known to be that of a record, so its own mark is correct.
		h, _, blob, err = readRecord(f, mark{}, at, buf)
		return err
	})
	if err == nil && h.flags&flagBlob == 0 {
		err = ErrNotFound
	}
	if err != nil {
		records.Put(buf)
		return nil, fmt.Errorf("open blob %s: %w", ref, err)
	}
	return &Reader{size: h.blobLen, small: blob, record: buf}, nil
}

// Size returns the blob's size in bytes.
func (r *Reader) Size() int64 { return r.size }

// ModTime returns the modification time of a blob that is a file.
func (r *Reader) ModTime() time.Time { return r.modTime }

// records is a pool of buffers for records.
var records = sync.Pool{New: func() any { b := make([]byte, firstRead); return &b }}

// blocks is a pool of buffers for blocks to verify or write.
var blocks = sync.Pool{New: func() any { return durable.NewBuffer(blockSize) }}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	next, err := r.Next(int64(len(p)))
	return copy(p, next), err
}

// Next returns the bytes that Read would, at least one and at most n, in memory that is valid until the next call of
// any method that reads, seeks or closes. It copies nothing that is on this disk.
func (r *Reader) Next(n int64) (next []byte, err error) {
	switch {
	case r.offset >= r.size:
		return nil, io.EOF
	case r.small != nil:
		next = r.small[r.offset:]
	case r.remote != nil:
		next, err = r.nextRemote(n)
	default:
		next, err = r.nextInBlock()
	}
	if err != nil {
		return nil, err
	}
	next = next[:min(n, int64(len(next)))]
	r.offset += int64(len(next))
	return next, nil
}

// nextInBlock returns the rest of the block that contains offset.
func (r *Reader) nextInBlock() ([]byte, error) {
	number := r.offset / blockSize
	block := r.buffer()
	if number != r.number {
		r.number = -1
		if err := r.readBlock(number, block); err != nil {
			return nil, err
		}
		r.number = number
	}
	start := number * blockSize
	return block[r.offset-start : min(blockSize, r.size-start)], nil
}

// nextRemote fetches at most n bytes.
func (r *Reader) nextRemote(n int64) ([]byte, error) {
	buf := r.buffer()
	got, err := r.remote.read(buf[:min(n, blockSize)], r.offset)
	return buf[:got], err
}

// buffer returns the Reader's buffer, of blockSize bytes.
func (r *Reader) buffer() []byte {
	if r.block == nil {
		r.block = blocks.Get().(*durable.Buffer)
	}
	return r.block.Bytes
}

// readBlock reads a block into buf, which has blockSize bytes, and verifies it.
func (r *Reader) readBlock(number int64, buf []byte) error {
	buf = buf[:min(blockSize, r.size-number*blockSize)]
	if _, err := r.file.ReadAt(buf, number*blockSize); err != nil {
		if err == io.EOF {
			err = ErrDamaged
		}
		return fmt.Errorf("read blob: %w", err)
	}
	if err := verifyBlock(r.file, r.size, number, buf); err != nil {
		return err
	}
	r.verified.add(fileID{r.ref, r.changed}, number)
	return nil
}

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("read blob: negative offset")
	}
	if r.small != nil {
		return bytes.NewReader(r.small).ReadAt(p, off)
	}
	if r.remote != nil {
		return r.remote.readAt(p, off)
	}
	err = r.eachBlock(off, int64(len(p)), func(number int64, block []byte) {
		n += copy(p[n:], block[max(0, off-number*blockSize):])
	})
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Verify returns ErrDamaged if any of the n bytes starting at off differs from what was written. It does not read what is
// away.
func (r *Reader) Verify(off, n int64) error {
	if r.small != nil || r.remote != nil { // Open verified it, or reading it does
		return nil
	}
	return r.eachBlock(off, n, func(int64, []byte) {})
}

// eachBlock calls fn with the verified blocks that contain the n bytes starting at off.
func (r *Reader) eachBlock(off, n int64, fn func(number int64, block []byte)) error {
	buf := blocks.Get().(*durable.Buffer)
	defer blocks.Put(buf)
	for number := off / blockSize; number*blockSize < min(off+n, r.size); number++ {
		if err := r.readBlock(number, buf.Bytes); err != nil {
			return err
		}
		fn(number, buf.Bytes[:min(blockSize, r.size-number*blockSize)])
	}
	return nil
}

// Seek implements io.Seeker.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, errors.New("seek in blob: negative position")
	}
	r.offset = offset
	return offset, nil
}

// Close closes the Reader and its file.
func (r *Reader) Close() error {
	if r.block != nil {
		blocks.Put(r.block)
		r.block, r.number = nil, -1
	}
	if r.small != nil {
		r.small = []byte{} // its buffer is reused
		r.size = 0
		if r.record != nil {
			records.Put(r.record)
			r.record = nil
		}
		return nil
	}
	if r.remote != nil {
		return r.remote.close()
	}
	return r.file.Close()
}
