package wal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"holdfast/backup/wal/xlog"
)

// TestSource: a read ends with its segment; a missing segment is lost WAL, but a missing directory or a truncated
// segment is not.
func TestSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &source{dir: dir, timeline: 1, size: smallSegment}
	t.Cleanup(s.close)
	want := bytes.Repeat([]byte("wal"), smallSegment)[:smallSegment]
	path := filepath.Join(dir, xlog.SegmentName(1, 3, smallSegment))
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, pieceSize)
	if n, err := s.read(buf, 4*smallSegment-100); err != nil || !bytes.Equal(buf[:n], want[smallSegment-100:]) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := s.read(buf, 4*smallSegment); !errors.Is(err, errLost) {
		t.Errorf("a segment that is gone: %v", err)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read(buf, 3*smallSegment); !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errLost) {
		t.Errorf("a segment that is cut short: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read(buf, 5*smallSegment); !errors.Is(err, os.ErrNotExist) || errors.Is(err, errLost) {
		t.Errorf("a directory that is gone: %v", err)
	}
}
