package wal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
	"holdfast/internal/durable"
	"holdfast/internal/durable/faultfs"
)

// longWAL returns WAL of that many segments, the last half full; each commit is stamped with its number in seconds,
// except those in stamps.
func longWAL(segments int, stamps map[int]int64) *xlogtest.Builder {
	b := &xlogtest.Builder{Start: smallSegment}
	for n := 0; b.Len() < segments*smallSegment-smallSegment/2; n++ {
		stamp := int64(n)
		if other, some := stamps[n]; some {
			stamp = other
		}
		b.Commit(stamp * 1e6)
		size := 3000 + n%7*9000
		long := xlogtest.MainData(bytes.Repeat([]byte{byte(n)}, size))
		b.Record(21, 0, long)
	}
	return b
}

// appendAll appends the WAL of b to generation 1 in pieces, starting at the writer's position, and calls confirmed
// with each durable end.
func appendAll(w *Writer, b *xlogtest.Builder, confirmed func(xlog.LSN)) error {
	at, err := w.Start(1, b.Start)
	if err != nil {
		return err
	}
	for at < b.Pos() {
		piece := b.Bytes()[at-b.Start:]
		piece = piece[:min(len(piece), 100_003)]
		if err := w.Append(at, piece); err != nil {
			return err
		}
		end, _, err := w.Sync()
		if err != nil {
			return err
		}
		confirmed(end)
		at += xlog.LSN(len(piece))
	}
	return nil
}

// openWriter opens an archive with a writer of generation 1.
func openWriter(dir string, fsys durable.FS) (*Archive, *Writer, error) {
	a, err := Open(dir, Options{FS: fsys})
	if err != nil {
		return nil, nil, err
	}
	var w *Writer
	if err = a.Create(1, nil); err == nil {
		if w, err = a.Writer(1); err == nil {
			if err = w.Identify(77, smallSegment, 1); err == nil {
				return a, w, nil
			}
			_ = w.Close()
		}
	}
	_ = a.Close()
	return nil, nil, err
}

// store archives b and returns the archive open for reading.
func store(t *testing.T, b *xlogtest.Builder) *Archive {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wal")
	a, w, err := openWriter(dir, &faultfs.FS{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := appendAll(w, b, func(xlog.LSN) {}); err != nil {
		t.Fatal(err)
	}
	w.compressor.wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// expectWAL checks that the archive in dir, reopened, has b up to end, byte for byte.
func expectWAL(t *testing.T, dir string, b *xlogtest.Builder, end xlog.LSN) {
	t.Helper()
	a, err := Open(dir, Options{})
	if err != nil {
		t.Error(err)
		return
	}
	defer a.Close()
	if end == b.Start {
		return
	}
	if err := a.Check(t.Context(), 1, 1, b.Start, end, nil); err != nil {
		t.Errorf("confirmed up to %v: %v", end, err)
		return
	}
	if got := archived(t, a, 1, 1, b.Start, end); !bytes.Equal(got, b.Bytes()[:end-b.Start]) {
		t.Errorf("the archive's WAL up to %v is not what was appended", end)
	}
}

// TestEveryFault fails each file operation in turn, with a full disk, and then permanently: confirmed WAL is there,
// and work can continue.
func TestEveryFault(t *testing.T) {
	t.Parallel()
	b := longWAL(2, nil)
	for k := 0; ; k++ {
		dir := filepath.Join(t.TempDir(), "wal")
		fsys := &faultfs.FS{NoSync: true, Err: syscall.ENOSPC, Hit: func(n int, _, _ string) bool { return n == k }}
		end := b.Start
		attempt := func() error {
			a, w, err := openWriter(dir, fsys)
			if err != nil {
				return err
			}
			defer a.Close()
			defer w.Close()
			err = appendAll(w, b, func(to xlog.LSN) { end = to })
			if err != nil && !errors.Is(err, ErrSync) {
				return appendAll(w, b, func(to xlog.LSN) { end = to }) // like the receiver
			}
			w.compressor.wait()
			return err
		}
		err := attempt()
		if errors.Is(err, ErrSync) != strings.HasPrefix(fsys.Fired(), "syncfile ") && strings.HasSuffix(fsys.Fired(), partialSuffix) {
			t.Errorf("%s: %v", fsys.Fired(), err)
		}
		expectWAL(t, dir, b, end)
		fsys.Arm(nil)
		if err := attempt(); err != nil {
			t.Errorf("%s, and after it: %v", fsys.Fired(), err)
		}
		expectWAL(t, dir, b, b.Pos())
		if fsys.Fired() == "" {
			t.Logf("%d operations", k)
			return
		}
	}
}

// TestSegmentSwitch: the padding after a record that switches segments is not reported as received before it is, and
// receiving continues where it was interrupted.
func TestSegmentSwitch(t *testing.T) {
	t.Parallel()
	b := longWAL(1, nil)
	b.Record(xlog.ResourceXLOG, xlogtest.InfoSwitch, nil)
	switched := b.Pos()
	b.Write(make([]byte, smallSegment-uint64(b.Pos())%smallSegment))
	b.Commit(1)
	whole := b.Bytes()
	dir := filepath.Join(t.TempDir(), "wal")
	a, w, err := openWriter(dir, durable.OS{})
	if err != nil {
		t.Fatal(err)
	}
	at := b.Start
	for _, come := range []xlog.LSN{switched, switched + 3*xlog.PageSize, b.Pos()} {
		if at, err = w.Start(1, at); err != nil {
			t.Fatal(err)
		}
		if err := w.Append(at, whole[at-b.Start:come-b.Start]); err != nil {
			t.Fatal(err)
		}
		if at, _, err = w.Sync(); err != nil || at != come {
			t.Errorf("come up to %v, said to be durable up to %v, %v", come, at, err)
		}
	}
	if err := errors.Join(w.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	expectWAL(t, dir, b, b.Pos())
}

// TestFailedSync: after a failed sync the writer refuses everything.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	b := longWAL(1, nil)
	on := false
	fsys := &faultfs.FS{NoSync: true, Err: syscall.EIO, Hit: func(_ int, verb, _ string) bool { return on && verb == "syncfile" }}
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), fsys)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer w.Close()
	at, err := w.Start(1, b.Start)
	if err == nil {
		err = w.Append(at, b.Bytes()[:5000])
	}
	if err != nil {
		t.Fatal(err)
	}
	on = true
	if _, _, err := w.Sync(); !errors.Is(err, ErrSync) || !errors.Is(err, syscall.EIO) {
		t.Errorf("the failed sync: %v", err)
	}
	on = false
	if _, _, err := w.Sync(); !errors.Is(err, ErrSync) {
		t.Errorf("a sync was tried again: %v", err)
	}
	if _, err := w.Start(1, b.Start); !errors.Is(err, ErrSync) {
		t.Errorf("it goes on after a failed sync: %v", err)
	}
}

// TestCheckedBeforeWritten: WAL with a wrong byte is refused with an explanation.
func TestCheckedBeforeWritten(t *testing.T) {
	t.Parallel()
	b := longWAL(1, nil)
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer w.Close()
	at, err := w.Start(1, b.Start)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(b.Bytes()[:20000])
	bad[15000] ^= 4
	if err := w.Append(at, bad); err == nil || !strings.Contains(err.Error(), "CRC") {
		t.Errorf("got %v", err)
	}
	if err := appendAll(w, b, func(xlog.LSN) {}); err != nil {
		t.Errorf("the right WAL afterwards: %v", err)
	}
}

// TestMissingSummaries: missing summaries are rebuilt.
func TestMissingSummaries(t *testing.T) {
	t.Parallel()
	b := longWAL(4, nil)
	a := store(t, b)
	before, err := a.Window(t.Context(), 1, 1, b.Start)
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	files, _ := filepath.Glob(filepath.Join(a.dir, "1", "*"+summarySuffix))
	want := map[string][]byte{}
	for _, file := range files {
		want[file], _ = os.ReadFile(file)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if a, err = Open(a.dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	after, err := a.Window(t.Context(), 1, 1, b.Start)
	if err != nil || before != after || after.To != b.Pos() {
		t.Errorf("before %+v, after %+v, %v; the end is %v", before, after, err, b.Pos())
	}
	for file, old := range want {
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, old) {
			t.Errorf("%s is not as before: %v", filepath.Base(file), err)
		}
	}
}

// TestReadOnly: an archive in use can be read, and is not changed.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	b := longWAL(3, nil)
	a := store(t, b)
	if _, err := Open(a.dir, Options{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("opened twice: %v", err)
	}
	r, err := Open(a.dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Check(t.Context(), 1, 1, b.Start, b.Pos(), nil); err != nil {
		t.Error(err)
	}
	if _, err := r.Writer(1); err == nil {
		t.Error("it can be written to")
	}
}

// TestCompressedMeanwhile: a reader follows when the writer compresses a segment, and does not report damage.
func TestCompressedMeanwhile(t *testing.T) {
	t.Parallel()
	b := longWAL(3, nil)
	a := store(t, b)
	name := filepath.Join(a.dir, "1", xlog.SegmentName(1, 2, smallSegment))
	compressed, err := os.ReadFile(name + compressedSuffix)
	if err == nil {
		err = errors.Join(os.Remove(name+compressedSuffix), os.Remove(name+summarySuffix),
			os.WriteFile(name+partialSuffix, b.Bytes()[smallSegment:2*smallSegment], 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	for what, read := range map[string]func(*Archive) error{
		"check":  func(r *Archive) error { return r.Check(t.Context(), 1, 1, b.Start, b.Pos(), nil) },
		"window": func(r *Archive) error { _, err := r.Window(t.Context(), 1, 1, b.Start); return err },
		"changes": func(r *Archive) error {
			_, err := r.ChangedPages(t.Context(), 1, 1, b.Start, b.Pos())
			return err
		},
		"verify": func(r *Archive) error {
			problems, err := r.Verify(t.Context())
			for _, p := range problems {
				err = errors.Join(err, p.Err)
			}
			return err
		},
	} {
		r, err := Open(a.dir, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(name+compressedSuffix, compressed, 0o600), os.Remove(name+partialSuffix)); err != nil {
			t.Fatal(err)
		}
		if err := read(r); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		r.Close()
		if err := errors.Join(os.Remove(name+compressedSuffix), os.WriteFile(name+partialSuffix, b.Bytes()[smallSegment:2*smallSegment], 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCommitsBeforeAFork: a generation begins with the segment in which it forked. What was committed in it before the fork
// says nothing about how far the generation's own commits are archived.
func TestCommitsBeforeAFork(t *testing.T) {
	t.Parallel()
	b := &xlogtest.Builder{Start: smallSegment}
	b.Commit(10e6)
	fork := b.Pos()
	b.Commit(20e6)
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), durable.OS{})
	if err == nil {
		err = appendAll(w, b, func(xlog.LSN) {})
	}
	if err == nil {
		err = a.Create(2, &Parent{Generation: 1, Timeline: 1, Fork: fork})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	child, err := a.Writer(2)
	if err == nil {
		err = child.Identify(77, smallSegment, 1)
	}
	if err == nil {
		_, err = child.Start(1, fork)
	}
	if err == nil {
		err = child.Append(b.Start, b.Bytes())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, commits, err := child.Sync(); err != nil || len(commits) != 1 || !commits[0].Equal(xlog.FromTimestamp(20e6)) {
		t.Errorf("the commits after the fork: %v, %v", commits, err)
	}
}
