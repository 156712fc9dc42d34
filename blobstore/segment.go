package blobstore

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// segmentLine is the first line of a segment.
func segmentLine(number uint32) string {
	text := fmt.Sprintf("holdfast journal 1 %08x", number)
	return fmt.Sprintf("%s %08x\n", text, crc32.Checksum([]byte(text), castagnoli))
}

const segmentHeader = 19 + 8 + 1 + 8 + 1 // the length of every segmentLine

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
	users int
	gone  bool // to be closed by its last user
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
	s.makeRoom()
	f := &segmentFile{File: file, users: 1}
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
