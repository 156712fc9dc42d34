package wal

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
	"holdfast/internal/durable"
)

// fullDisk is the disk with no room for compressed segments, while it is full.
type fullDisk struct {
	durable.OS
	full atomic.Bool
}

func (d *fullDisk) Create(path string) (durable.File, error) {
	if d.full.Load() && strings.HasSuffix(path, compressedSuffix+durable.NewSuffix) {
		return nil, syscall.ENOSPC
	}
	return d.OS.Create(path)
}

// TestFullDiskWhileCompressing: connections that come and go while a segment cannot
// be compressed leave nothing that is in the way once it can.
func TestFullDiskWhileCompressing(t *testing.T) {
	t.Parallel()
	b := longWAL(4, nil)
	fsys := &fullDisk{}
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), fsys)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer w.Close()
	fsys.full.Store(true)
	part := &xlogtest.Builder{Start: b.Start}
	part.Write(b.Bytes()[:smallSegment])
	for range 3 {
		if err := appendAll(w, part, func(xlog.LSN) {}); err != nil {
			t.Fatal(err)
		}
		w.compressor.wait()
	}
	if w.compressor.failure() == nil {
		t.Error("a segment was compressed on a full disk")
	}
	fsys.full.Store(false)
	if err := appendAll(w, b, func(xlog.LSN) {}); err != nil {
		t.Fatal(err)
	}
	compressed := func() bool {
		for n := range uint64(3) {
			if !a.segment(w.branch, segmentKey{1, 1 + n}).compressed {
				return false
			}
		}
		return true
	}
	eventually(t, "all that is full is compressed", compressed)
	// Queued in the moment it was done.
	w.compressor.add(segmentKey{1, 1}, &summary{key: segmentKey{1, 1}, changes: &xlog.Changes{}})
	w.compressor.wait()
	if err := w.compressor.failure(); err != nil {
		t.Error(err)
	}
	if _, err := a.Prune([]Keep{{1, b.Pos()}}); err != nil {
		t.Error(err)
	}
	if sizes := a.Sizes(1); sizes.Segments != 1 {
		t.Errorf("%d segments are left, want the newest", sizes.Segments)
	}
}
