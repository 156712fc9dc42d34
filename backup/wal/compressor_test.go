package wal

import (
	"bytes"
	"errors"
	"os"
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

// fullDisk is an archive on a disk that has no space for compressed segments.
type fullDisk struct {
	archive *Archive
	writer  *Writer
	fs      *faultfs.FS       // Arm(nil) makes space
	wal     *xlogtest.Builder // several segments
	segment *xlogtest.Builder // the first of them
}

func newFullDisk(t *testing.T) fullDisk {
	t.Helper()
	d := fullDisk{wal: longWAL(4, nil), fs: &faultfs.FS{Err: syscall.ENOSPC}}
	var err error
	if d.archive, d.writer, err = openWriter(filepath.Join(t.TempDir(), "wal"), d.fs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.archive.Close() })
	d.fs.Arm(func(_ int, verb, path string) bool {
		return verb == "create" && strings.HasSuffix(path, compressedSuffix+durable.NewSuffix)
	})
	d.segment = &xlogtest.Builder{Start: d.wal.Start}
	d.segment.Write(d.wal.Bytes()[:smallSegment])
	return d
}

// TestFullDiskWhileCompressing checks that sessions that begin and end while a segment cannot be compressed do not
// prevent its later compression.
func TestFullDiskWhileCompressing(t *testing.T) {
	t.Parallel()
	d := newFullDisk(t)
	a, w, b := d.archive, d.writer, d.wal
	defer w.Close()
	for range 3 {
		if err := appendAll(w, d.segment, func(xlog.LSN) {}); err != nil {
			t.Fatal(err)
		}
		w.compressor.wait()
	}
	if w.compressor.failure() == nil {
		t.Error("a segment was compressed on a full disk")
	}
	d.fs.Arm(nil)
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
	testenv.Eventually(t, "all that is full is compressed", func() bool { return compressed() && w.compressor.failure() == nil })
	if _, err := a.Prune([]Keep{{1, b.Pos()}}); err != nil {
		t.Error(err)
	}
	if sizes := a.Sizes(1); sizes.Segments != 1 {
		t.Errorf("%d segments are left, want the newest", sizes.Segments)
	}
}

// TestCompressorRetriesAfterAStart checks that a compression that failed at a start is tried again.
func TestCompressorRetriesAfterAStart(t *testing.T) {
	t.Parallel()
	d := newFullDisk(t)
	a, w, b := d.archive, d.writer, d.wal
	if err := appendAll(w, d.segment, func(xlog.LSN) {}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the disk is full", func() bool { return w.compressor.failure() != nil })
	if err := w.Close(); err != nil { // the receiver is closed, and opened again
		t.Fatal(err)
	}
	w, err := a.Writer(1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Start(1, b.Start); err != nil {
		t.Fatal(err)
	}
	if w.compressor.failure() == nil {
		t.Fatal("compressed on a full disk")
	}
	d.fs.Arm(nil) // there is space again, and the server is idle
	testenv.Within(t, compressRetry+15*time.Second, "compressed", func() bool { return w.compressor.failure() == nil })
}

// TestCompressesWhatIsLeft: full segments that a copy made are read as they are, and are compressed once any generation has
// a writer.
func TestCompressesWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := longWAL(3, nil)
	dir := filepath.Join(t.TempDir(), "wal")
	copied := NewCopy(dir)
	text, err := os.ReadFile(filepath.Join(store(t, b).dir, "1", generationFile))
	if err == nil {
		err = copied.Put(1, generationFile, text)
	}
	if err == nil {
		err = copied.WAL(1, 1, b.Start, b.Bytes())
	}
	if err := errors.Join(err, copied.Sync()); err != nil {
		t.Fatal(err)
	}
	expectWAL(t, dir, b, b.Pos())
	a, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	left := func() int { return len(a.fullPartials(a.branches[1])) }
	if n := left(); n != 2 {
		t.Fatalf("%d full segments are left to be compressed when the archive is opened, want 2", n)
	}
	if err := a.Create(2, &Parent{Generation: 1, Timeline: 1, Fork: b.Pos()}); err != nil {
		t.Fatal(err)
	}
	w, err := a.Writer(2)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	testenv.Eventually(t, "all that is full is compressed", func() bool { return left() == 0 })
	if got := archived(t, a, 1, 1, b.Start, b.Pos()); !bytes.Equal(got, b.Bytes()) {
		t.Error("the WAL is not what was copied")
	}
}
