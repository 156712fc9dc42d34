package wal

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
	"holdfast/internal/durable"
	"holdfast/internal/durable/faultfs"
	"holdfast/internal/testenv"
)

// TestFullDiskWhileCompressing checks that sessions that begin and end while a segment cannot be compressed do not
// prevent its later compression.
func TestFullDiskWhileCompressing(t *testing.T) {
	t.Parallel()
	b := longWAL(4, nil)
	fsys := &faultfs.FS{Err: syscall.ENOSPC}
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), fsys)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer w.Close()
	fsys.Arm(func(_ int, verb, path string) bool {
		return verb == "create" && strings.HasSuffix(path, compressedSuffix+durable.NewSuffix)
	})
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
	fsys.Arm(nil)
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
	testenv.Eventually(t, "all that is full is compressed", compressed)
	w.compressor.wait() // nothing is left to do
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
