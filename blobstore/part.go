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
// ResumePart. It is written from its beginning on, or in sections, each at its place, in any order and at the same time.
// A Part is not safe for concurrent use, and no two that are open may write the same bytes.
type Part struct {
	store *Store
	file  durable.File
	start int64 // of the section in the file
	limit int64 // of size, -1 for none
	size  int64 // of what the section has
	crc   uint32
	sums  *blockSums // of what the section has; nil if that does not begin with a block, or is larger than maxKnown
}

// maxKnown is the size in bytes of the largest section whose blocks' checksums are known, which take 1 KiB: they are kept
// with it, and a Part may have thousands.
const maxKnown = 64 << 20

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
	f, err := s.reopenPart(id, size)
	if err != nil {
		return nil, err
	}
	return &Part{store: s, file: f, limit: -1, size: size, crc: crc}, nil
}

// ErrSectionEnd means that a write would go beyond the end of a section.
var ErrSectionEnd = errors.New("beyond the end of the section")

// OpenSection opens the section of a Part that begins at start and has at most limit bytes, to be written from there on.
// It returns ErrNotFound if the Part does not exist. The caller must close the section.
func (s *Store) OpenSection(id string, start, limit int64) (*Part, error) {
	f, err := s.reopenPart(id, 0)
	if err != nil {
		return nil, err
	}
	p := &Part{store: s, file: f, start: start, limit: limit}
	if start%blockSize == 0 {
		p.sums = &blockSums{}
	}
	return p, nil
}

// reopenPart opens a Part that has at least size bytes for writing.
func (s *Store) reopenPart(id string, size int64) (durable.File, error) {
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
	return f, nil
}

// DiscardSection gives back the disk space of size bytes of a Part from start on, where the file system can; elsewhere it
// returns errors.ErrUnsupported. A Part that does not exist has none.
func (s *Store) DiscardSection(id string, start, size int64) error {
	f, err := s.reopenPart(id, 0)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := errors.Join(f.Discard(start, size), f.Close()); err != nil {
		return fmt.Errorf("discard section: %w", err)
	}
	return nil
}

// Write implements io.Writer. It writes nothing and returns ErrSectionEnd if b does not fit in the section.
func (p *Part) Write(b []byte) (int, error) {
	if p.limit >= 0 && int64(len(b)) > p.limit-p.size {
		return 0, fmt.Errorf("write part: %w", ErrSectionEnd)
	}
	n, err := p.file.WriteAt(b, p.start+p.size)
	p.size += int64(n)
	p.crc = crc32.Update(p.crc, castagnoli, b[:n])
	switch {
	case p.size > maxKnown:
		p.sums = nil
	case p.sums != nil:
		p.sums.add(b[:n])
	}
	if err != nil {
		return n, fmt.Errorf("write part: %w", err)
	}
	return n, nil
}

// Blocks returns the Section.Blocks of what was written so far.
func (p *Part) Blocks() []byte {
	if p.sums == nil {
		return nil
	}
	return p.sums.all()
}

// Sync makes the written bytes durable. It returns the number and the CRC-32C of those that the Part or the section has.
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

// OpenPart opens the size bytes of a Part from start on, whose CRC-32C is crc, for one sequential read. At their end,
// Read returns ErrDamaged if they differ from what was written. The caller must close the result.
func (s *Store) OpenPart(id string, start, size int64, crc uint32) (io.ReadCloser, error) {
	f, err := os.Open(s.partPath(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open part: %w", ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open part: %w", err)
	}
	return newPartReader(f, start, Section{Size: size, CRC32C: crc}), nil
}

// partReader reads and verifies a section of a Part.
type partReader struct {
	file      *os.File
	at, left  int64
	crc, want uint32
}

func newPartReader(f *os.File, start int64, section Section) *partReader {
	return &partReader{file: f, at: start, left: section.Size, want: section.CRC32C}
}

// Read implements io.Reader.
func (r *partReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		if r.crc != r.want {
			return 0, fmt.Errorf("read part: %w", ErrDamaged)
		}
		return 0, io.EOF
	}
	n, err := r.file.ReadAt(p[:min(int64(len(p)), r.left)], r.at)
	r.at, r.left = r.at+int64(n), r.left-int64(n)
	r.crc = crc32.Update(r.crc, castagnoli, p[:n])
	if err == io.EOF && r.left == 0 {
		err = nil
	}
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

// QuarantinePart moves a Part out of the store, to path on the same file system.
func (s *Store) QuarantinePart(id, path string) error {
	if err := s.fs.Rename(s.partPath(id), path); err != nil {
		return fmt.Errorf("quarantine part: %w", err)
	}
	return nil
}

// HasPart reports whether the Part exists. It returns false only if it certainly does not.
func (s *Store) HasPart(id string) bool {
	_, err := os.Stat(s.partPath(id))
	return isThere(err)
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
