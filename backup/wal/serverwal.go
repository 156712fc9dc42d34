package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/backup/wal/xlog"
)

// source reads the WAL files in a server's pg_wal. They contain all flushed WAL, which does not change.
type source struct {
	dir      string
	timeline uint32
	size     uint64 // of a segment

	file *os.File // file of segment n; nil before the first
	n    uint64
}

// errLost means that the server no longer has the WAL.
var errLost = errors.New("the server has removed WAL that the archive does not have")

// read reads WAL into buf, from a position up to the end of its segment.
func (s *source) read(buf []byte, at xlog.LSN) (int, error) {
	n, offset := uint64(at)/s.size, uint64(at)%s.size
	if s.file == nil || s.n != n {
		if err := s.open(n); err != nil {
			return 0, err
		}
	}
	buf = buf[:min(uint64(len(buf)), s.size-offset)]
	if _, err := s.file.ReadAt(buf, int64(offset)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, fmt.Errorf("read the server's WAL at %v: %w", at, err)
	}
	return len(buf), nil
}

func (s *source) open(n uint64) error {
	s.close()
	file, err := os.Open(filepath.Join(s.dir, xlog.SegmentName(s.timeline, n, s.size)))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(s.dir); err != nil { // pg_wal itself is missing: the segment may exist
			return fmt.Errorf("read the server's WAL: %w", err)
		}
		return fmt.Errorf("%w: %w", errLost, err)
	}
	if err != nil {
		return fmt.Errorf("read the server's WAL: %w", err)
	}
	s.file, s.n = file, n
	return nil
}

func (s *source) close() {
	if s.file != nil {
		_ = s.file.Close() // opened for reading only
		s.file = nil
	}
}
