package blobstore

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"holdfast/internal/durable"
)

// Part is a blob that is written over a longer time, across restarts, before it is published. After a power cut, the
// bytes that Sync confirmed remain: the caller stores the results of Sync with the Part's id, and passes them to
// ResumePart. A Part is not safe for concurrent use, and must be open only once at a time.
type Part struct {
	store *Store
	file  durable.File
	size  int64
	crc   uint32
}

// CreatePart creates an empty Part and returns its id.
func (s *Store) CreatePart(ctx context.Context) (string, error) {
	if err := s.enter(ctx); err != nil {
		return "", fmt.Errorf("create part: %w", err)
	}
	defer s.life.RUnlock()
	if err := s.writable(); err != nil {
		return "", err
	}
	id := newID()
	f, err := s.fs.Create(s.partPath(id))
	if err != nil {
		return "", fmt.Errorf("create part: %w", err)
	}
	if err := f.Close(); err != nil {
		return "", errors.Join(fmt.Errorf("create part: %w", err), s.fs.Remove(s.partPath(id)))
	}
	if err := s.syncDir(s.parts); err != nil {
		return "", errors.Join(err, s.fs.Remove(s.partPath(id)))
	}
	return id, nil
}

// partPath returns the path of a Part. An id that CreatePart did not make leads to no file.
func (s *Store) partPath(id string) string {
	if !idForm.MatchString(id) {
		id = "none"
	}
	return filepath.Join(s.parts, id)
}

// ResumePart opens a Part after its first size bytes, whose CRC-32C is crc, and overwrites the bytes after them. It
// returns ErrNotFound if the Part does not exist. The caller must close the Part.
func (s *Store) ResumePart(id string, size int64, crc uint32) (*Part, error) {
	path := s.partPath(id)
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() < size {
		return nil, fmt.Errorf("resume part: %w", ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("resume part: %w", err)
	}
	if err := s.writable(); err != nil {
		return nil, err
	}
	f, err := s.fs.Reopen(path)
	if err != nil {
		return nil, fmt.Errorf("resume part: %w", err)
	}
	return &Part{store: s, file: f, size: size, crc: crc}, nil
}

// Write implements io.Writer.
func (p *Part) Write(b []byte) (int, error) {
	n, err := p.file.WriteAt(b, p.size)
	p.size += int64(n)
	p.crc = crc32.Update(p.crc, castagnoli, b[:n])
	if err != nil {
		return n, fmt.Errorf("write part: %w", err)
	}
	return n, nil
}

// Sync makes the written bytes durable. It returns their number and their CRC-32C.
func (p *Part) Sync() (size int64, crc uint32, err error) {
	if err := p.store.syncFile(p.file); err != nil {
		return 0, 0, fmt.Errorf("sync part: %w", err)
	}
	return p.size, p.crc, nil
}

// Close closes the Part, which remains until it is published or removed.
func (p *Part) Close() error {
	if err := p.file.Close(); err != nil {
		return fmt.Errorf("close part: %w", err)
	}
	return nil
}

// FinishPart returns a Writer with the content of a Part, of size bytes with the CRC-32C crc. Publishing it removes
// the Part. If the bytes differ from what was written, FinishPart removes the Part and returns ErrDamaged. Any other
// failure (a full disk, a closed store, Abort) leaves the Part as it is.
func (s *Store) FinishPart(ctx context.Context, id string, size int64, crc uint32) (*Writer, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("finish part: %w", err)
	}
	defer s.life.RUnlock()
	part, err := s.ResumePart(id, size, crc)
	if err != nil {
		return nil, err
	}
	w := &Writer{ctx: ctx, store: s, id: newID(), temp: s.partPath(id), large: true, part: id, file: part.file, size: size}
	err = s.fs.Truncate(w.temp, size) // an earlier attempt to finish the Part may have left more
	if err == nil {
		err = w.readBack()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("finish part: %w", err), part.Close())
	}
	if w.CRC32C() != crc {
		return nil, errors.Join(fmt.Errorf("finish part: %w", ErrDamaged), part.Close(), s.RemovePart(id))
	}
	return w, nil
}

// readBack computes the checksums of the file's content.
func (w *Writer) readBack() error {
	f, err := os.Open(w.temp)
	if err != nil {
		return fmt.Errorf("read part: %w", err)
	}
	defer f.Close()
	buf := blocks.Get().(*durable.Buffer)
	defer blocks.Put(buf)
	for {
		if err := context.Cause(w.ctx); err != nil {
			return err
		}
		n, err := f.Read(buf.Bytes)
		w.sums.write(buf.Bytes[:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read part: %w", err)
		}
	}
}

// OpenPart opens the first size bytes of a Part, whose CRC-32C is crc, for one sequential read. At their end, Read
// returns ErrDamaged if they differ from what was written. The caller must close the result.
func (s *Store) OpenPart(id string, size int64, crc uint32) (io.ReadCloser, error) {
	f, err := os.Open(s.partPath(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open part: %w", ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open part: %w", err)
	}
	return &partReader{file: f, left: size, want: crc}, nil
}

// partReader reads and verifies a Part.
type partReader struct {
	file      *os.File
	left      int64
	crc, want uint32
}

// Read implements io.Reader.
func (r *partReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		if r.crc != r.want {
			return 0, fmt.Errorf("read part: %w", ErrDamaged)
		}
		return 0, io.EOF
	}
	n, err := r.file.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	r.crc = crc32.Update(r.crc, castagnoli, p[:n])
	if err == io.EOF {
		err = fmt.Errorf("read part: it is too short: %w", ErrDamaged)
	}
	return n, err
}

// Close implements io.Closer.
func (r *partReader) Close() error { return r.file.Close() }

// RemovePart removes a Part. It is idempotent.
func (s *Store) RemovePart(id string) error {
	if err := s.fs.Remove(s.partPath(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove part: %w", err)
	}
	return nil
}

// HasPart reports whether the Part exists.
func (s *Store) HasPart(id string) bool {
	_, err := os.Stat(s.partPath(id))
	return err == nil
}

// Parts returns the ids of all Parts.
func (s *Store) Parts() ([]string, error) {
	entries, err := os.ReadDir(s.parts)
	if err != nil {
		return nil, fmt.Errorf("list parts: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if idForm.MatchString(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}
