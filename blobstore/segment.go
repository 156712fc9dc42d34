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
	"strings"
	"sync"
)

const (
	segmentText   = "holdfast journal 1 "
	segmentMark   = len(segmentText) + 8 + 1
	segmentHeader = segmentMark + 2*len(mark{}) + 1 + 8 + 1 // the length of every segmentLine
)

// segmentLine returns the first line of a segment.
func segmentLine(number uint32, m mark) string {
	text := fmt.Sprintf("%s%08x %x", segmentText, number, m)
	return fmt.Sprintf("%s %08x\n", text, crc32.Checksum([]byte(text), castagnoli))
}

// MarkOf returns the mark of a segment that begins with those bytes, "" if they are not the beginning of a segment.
func MarkOf(begin []byte) string {
	if len(begin) < segmentHeader || !strings.HasPrefix(string(begin[:segmentHeader]), segmentText) {
		return ""
	}
	return string(begin[segmentMark : segmentMark+2*len(mark{})])
}

// maxOpenSegments is the maximum number of segments kept open for reading.
const maxOpenSegments = 128

// segmentFiles are segments kept open to read single records: opening one takes four times as long as reading a
// small record.
type segmentFiles struct {
	mu      sync.RWMutex // not held while the disk is read
	open    map[uint32]*os.File
	forgets int // how often forget was called
}

// read calls fn with an open segment.
func (s *segmentFiles) read(number uint32, path string, fn func(*os.File) error) error {
	s.mu.RLock()
	f, forgets := s.open[number], s.forgets
	s.mu.RUnlock()
	if f != nil {
		if err := fn(f); !errors.Is(err, os.ErrClosed) { // closed before it was read
			return err
		}
	}
	f, err := openSegment(path)
	if err != nil {
		return err
	}
	err = fn(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[number] != nil || s.forgets != forgets { // the segment may have been removed
		f.Close()
		return err
	}
	if len(s.open) >= maxOpenSegments {
		s.closeAll()
	}
	s.open[number] = f
	return err
}

// forget closes the segments. The next reader reopens those in use.
func (s *segmentFiles) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgets++
	s.closeAll()
}

func (s *segmentFiles) closeAll() {
	for _, f := range s.open {
		f.Close()
	}
	clear(s.open)
}

// segmentFile is a segment open for reading.
type segmentFile struct {
	io.ReaderAt
	number  uint32
	mark    mark
	damaged error // an ErrDamaged if the first line differs from what was written
}

// openSegment opens a segment. It returns ErrNotFound if the segment does not exist.
func openSegment(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("open journal segment: %w", err)
	}
	return f, nil
}

// readMark reads the segment's mark. If the first line is damaged, it takes the mark from the first record.
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

// hasRecords reports whether there is data after the first line. If not, the creation of the segment was
// interrupted.
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
