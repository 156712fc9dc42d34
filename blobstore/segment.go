package blobstore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

const (
	segmentText   = "holdfast journal 1 "
	segmentMark   = len(segmentText) + 8 + 1
	segmentHeader = segmentMark + 2*len(mark{}) + 1 + 8 + 1 // the length of every segmentLine
)

// segmentLine is the first line of a segment.
func segmentLine(number uint32, m mark) string {
	text := fmt.Sprintf("%s%08x %x", segmentText, number, m)
	return fmt.Sprintf("%s %08x\n", text, crc32.Checksum([]byte(text), castagnoli))
}

// maxOpenSegments is how many segments are held open for reading.
const maxOpenSegments = 128

// segmentFiles are the segments open for reading.
type segmentFiles struct {
	dir string

	mu   sync.Mutex
	open map[uint32]*segmentFile
}

// segmentFile is one segment, open as long as somebody reads it.
type segmentFile struct {
	*os.File
	number  uint32
	mark    mark
	damaged error // an ErrDamaged when the first line is not what was written
	users   int
	gone    bool // to be closed by its last user
}

// readMark finds out the segment's mark. Where the first line is damaged, the
// first record has it as well.
func (f *segmentFile) readMark() error {
	head := make([]byte, segmentHeader+len(mark{}))
	_, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("read journal segment: %w", err)
	}
	line, record := head[:segmentHeader], head[segmentHeader:]
	_, _ = hex.Decode(f.mark[:], line[segmentMark:segmentMark+2*len(mark{})])
	if string(line) == segmentLine(f.number, f.mark) {
		return nil
	}
	written, err := f.hasRecords()
	if written {
		f.mark = mark(record)
		f.damaged = fmt.Errorf("first line of journal segment %08x: %w", f.number, ErrDamaged)
	}
	return err
}

// markAt returns the mark of the record at a position that is known to be one's.
// Where the first line is damaged, its neighbours may be too.
func (f *segmentFile) markAt(at Position) mark {
	m := f.mark
	if f.damaged != nil {
		_, _ = f.ReadAt(m[:], at.offset()) // what cannot be read is damaged
	}
	return m
}

// hasRecords reports whether anything lies behind the first line. If not, the
// making of the segment was cut off.
func (f *segmentFile) hasRecords() (bool, error) {
	buf := make([]byte, 64<<10)
	for offset := int64(segmentHeader); ; {
		n, err := f.ReadAt(buf, offset)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read journal segment: %w", err)
		}
		offset += int64(n)
	}
}

func newSegmentFiles(dir string) *segmentFiles {
	return &segmentFiles{dir: dir, open: map[uint32]*segmentFile{}}
}

// acquire opens a segment, or answers ErrNotFound. The caller releases it.
func (s *segmentFiles) acquire(number uint32) (*segmentFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.open[number]; f != nil {
		f.users++
		return f, nil
	}
	file, err := os.Open(filepath.Join(s.dir, directoryName(number)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("open journal segment: %w", err)
	}
	f := &segmentFile{File: file, number: number, users: 1}
	if err := f.readMark(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s.makeRoom()
	s.open[number] = f
	return f, nil
}

// makeRoom closes segments nobody reads when too many are open. They were
// opened for reading only, so that their closes have no news.
func (s *segmentFiles) makeRoom() {
	for number, f := range s.open {
		if len(s.open) < maxOpenSegments {
			return
		}
		if f.users == 0 {
			f.Close()
			delete(s.open, number)
		}
	}
}

func (s *segmentFiles) release(f *segmentFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.users--; f.users == 0 && f.gone {
		f.Close()
	}
}

// forget closes a segment, after its last user.
func (s *segmentFiles) forget(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(number)
}

func (s *segmentFiles) forgetLocked(number uint32) {
	f := s.open[number]
	if f == nil {
		return
	}
	delete(s.open, number)
	if f.gone = true; f.users == 0 {
		f.Close()
	}
}

func (s *segmentFiles) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for number := range s.open {
		s.forgetLocked(number)
	}
}
