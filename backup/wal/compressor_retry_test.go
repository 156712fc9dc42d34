package wal

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
	"holdfast/internal/durable"
	"holdfast/internal/durable/faultfs"
	"holdfast/internal/testenv"
)

// A compression that a start tried in vain on a full disk is tried again.
func TestCompressorRetriesAfterAStart(t *testing.T) {
	t.Parallel()
	b := longWAL(4, nil)
	fsys := &faultfs.FS{Err: syscall.ENOSPC}
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), fsys)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	fsys.Arm(func(_ int, verb, path string) bool {
		return verb == "create" && strings.HasSuffix(path, compressedSuffix+durable.NewSuffix)
	})
	part := &xlogtest.Builder{Start: b.Start}
	part.Write(b.Bytes()[:smallSegment])
	if err := appendAll(w, part, func(xlog.LSN) {}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the disk is full", func() bool { return w.compressor.failure() != nil })
	if err := w.Close(); err != nil { // the receiver is closed, and opened again
		t.Fatal(err)
	}
	if w, err = a.Writer(1); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Start(1, b.Start); err != nil {
		t.Fatal(err)
	}
	if w.compressor.failure() == nil {
		t.Fatal("compressed on a full disk")
	}
	fsys.Arm(nil) // there is space again, and the server is idle
	testenv.Within(t, compressRetry+15*time.Second, "compressed", func() bool { return w.compressor.failure() == nil })
}
