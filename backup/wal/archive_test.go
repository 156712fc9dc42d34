package wal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// faultFS is the disk with a fault: the operation that hit selects fails with
// err.
type faultFS struct {
	disk
	err error
	hit func(n int, verb string) bool

	mu    sync.Mutex
	n     int
	fired string
}

func (f *faultFS) try(verb, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.hit == nil || !f.hit(f.n-1, verb) {
		return nil
	}
	f.fired = verb + " " + filepath.Base(path)
	return fmt.Errorf("%s: injected: %w", f.fired, f.err)
}

func (f *faultFS) Mkdir(path string) error {
	return errors.Join(f.try("mkdir", path), f.disk.Mkdir(path))
}

func (f *faultFS) Create(path string, size int64) (file, error) {
	if err := f.try("create", path); err != nil {
		return nil, err
	}
	inner, err := f.disk.Create(path, size)
	return &faultFile{inner, f, path}, err
}

func (f *faultFS) Open(path string) (file, error) {
	if err := f.try("open", path); err != nil {
		return nil, err
	}
	inner, err := f.disk.Open(path)
	return &faultFile{inner, f, path}, err
}

func (f *faultFS) SyncDir(path string) error {
	if err := f.try("syncdir", path); err != nil {
		return err
	}
	return nil // no test here loses what was not synced
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.try("rename", to); err != nil {
		return err
	}
	return f.disk.Rename(from, to)
}

func (f *faultFS) Remove(path string) error {
	if err := f.try("remove", path); err != nil {
		return err
	}
	return f.disk.Remove(path)
}

type faultFile struct {
	file
	fs   *faultFS
	path string
}

// WriteAt writes half when it fails, as a full disk does.
func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.try("write", f.path); err != nil {
		n, _ := f.file.WriteAt(p[:len(p)/2], off)
		return n, err
	}
	return f.file.WriteAt(p, off)
}

func (f *faultFile) Sync() error {
	if err := f.fs.try("sync", f.path); err != nil {
		return err
	}
	return nil
}

// longWAL is WAL of a few segments, half of the last; commits are stamped with their number, in
// seconds, but for those in stamps.
func longWAL(segments int, stamps map[int]int64) *walBuilder {
	b := &walBuilder{start: smallSegment}
	for n := 0; b.Len() < segments*smallSegment-smallSegment/2; n++ {
		stamp := int64(n)
		if other, some := stamps[n]; some {
			stamp = other
		}
		b.record(ResourceXact, xactCommit, commitBody(stamp*1e6))
		size := 3000 + n%7*9000
		long := append([]byte{idMainLong, byte(size), byte(size >> 8), 0, 0}, bytes.Repeat([]byte{byte(n)}, size)...)
		b.record(21, 0, long)
	}
	return b
}

// appendAll appends the WAL of b to incarnation 1 in pieces, from where the
// writer starts on, and calls confirmed with each end that is durable.
func appendAll(w *Writer, b *walBuilder, confirmed func(LSN)) error {
	at, err := w.Start(1, b.start)
	if err != nil {
		return err
	}
	for at < b.pos() {
		piece := b.Bytes()[at-b.start:]
		piece = piece[:min(len(piece), 100_003)]
		if err := w.Append(at, piece); err != nil {
			return err
		}
		end, _, err := w.Sync()
		if err != nil {
			return err
		}
		confirmed(end)
		at += LSN(len(piece))
	}
	return nil
}

// openWriter opens an archive with a writer of incarnation 1.
func openWriter(dir string, fsys fileSystem) (*Archive, *Writer, error) {
	a, err := Open(dir, Options{fsys: fsys})
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

// store archives b and returns the archive, for reading.
func store(t *testing.T, b *walBuilder) *Archive {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wal")
	a, w, err := openWriter(dir, &faultFS{})
	if err != nil {
		t.Fatal(err)
	}
	if err := appendAll(w, b, func(LSN) {}); err != nil {
		t.Fatal(err)
	}
	w.packer.wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// expectWAL expects the archive in dir to have b up to end, to the byte, when
// it is opened anew.
func expectWAL(t *testing.T, dir string, b *walBuilder, end LSN) {
	t.Helper()
	a, err := Open(dir, Options{})
	if err != nil {
		t.Error(err)
		return
	}
	defer a.Close()
	if end == b.start {
		return
	}
	if err := a.Check(t.Context(), 1, 1, b.start, end, nil); err != nil {
		t.Errorf("confirmed up to %v: %v", end, err)
		return
	}
	if got := archived(t, a, 1, 1, b.start, end); !bytes.Equal(got, b.Bytes()[:end-b.start]) {
		t.Errorf("the archive's WAL up to %v is not what was appended", end)
	}
}

// TestEveryFault fails each operation on files in turn, with a full disk, and
// then for good: what was confirmed is there, and the work can go on.
func TestEveryFault(t *testing.T) {
	t.Parallel()
	b := longWAL(2, nil)
	for k := 0; ; k++ {
		dir := filepath.Join(t.TempDir(), "wal")
		fsys := &faultFS{err: syscall.ENOSPC, hit: func(n int, _ string) bool { return n == k }}
		end := b.start
		attempt := func() error {
			a, w, err := openWriter(dir, fsys)
			if err != nil {
				return err
			}
			defer a.Close()
			defer w.Close()
			err = appendAll(w, b, func(to LSN) { end = to })
			if err != nil && !errors.Is(err, ErrSync) {
				return appendAll(w, b, func(to LSN) { end = to }) // as the receiver does
			}
			w.packer.wait()
			return err
		}
		err := attempt()
		if errors.Is(err, ErrSync) != strings.HasPrefix(fsys.fired, "sync ") && strings.HasSuffix(fsys.fired, partialSuffix) {
			t.Errorf("%s: %v", fsys.fired, err)
		}
		expectWAL(t, dir, b, end)
		fsys.hit = nil
		if err := attempt(); err != nil {
			t.Errorf("%s, and after it: %v", fsys.fired, err)
		}
		expectWAL(t, dir, b, b.pos())
		if fsys.fired == "" {
			t.Logf("%d operations", k)
			return
		}
	}
}

// TestFailedSync: after it the writer refuses everything.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	b := longWAL(1, nil)
	on := false
	fsys := &faultFS{err: syscall.EIO, hit: func(_ int, verb string) bool { return on && verb == "sync" }}
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), fsys)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer w.Close()
	at, err := w.Start(1, b.start)
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
	if _, err := w.Start(1, b.start); !errors.Is(err, ErrSync) {
		t.Errorf("it goes on after a failed sync: %v", err)
	}
}

// TestCheckedBeforeWritten: WAL with a wrong byte is refused, in words.
func TestCheckedBeforeWritten(t *testing.T) {
	t.Parallel()
	b := longWAL(1, nil)
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer w.Close()
	at, err := w.Start(1, b.start)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(b.Bytes()[:20000])
	bad[15000] ^= 4
	if err := w.Append(at, bad); err == nil || !strings.Contains(err.Error(), "CRC") {
		t.Errorf("got %v", err)
	}
	if err := appendAll(w, b, func(LSN) {}); err != nil {
		t.Errorf("the right WAL afterwards: %v", err)
	}
}

// TestVerifyNamesDamage flips one byte of each kind of file.
func TestVerifyNamesDamage(t *testing.T) {
	t.Parallel()
	b := longWAL(3, nil)
	a := store(t, b)
	for _, suffix := range []string{compressedSuffix, summarySuffix, partialSuffix} {
		name := SegmentName(1, 2, smallSegment) + suffix
		if suffix == partialSuffix {
			name = SegmentName(1, 3, smallSegment) + suffix
		}
		path := filepath.Join(a.dir, "1", name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{0, 9, 50, len(data) / 3, len(data) / 2} {
			data[at] ^= 0x10
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			problems, err := a.Verify(t.Context())
			if err != nil || len(problems) != 1 || problems[0].File != name {
				t.Errorf("byte %d of %s: %v, %v", at, name, problems, err)
			}
			err = a.Check(t.Context(), 1, 1, b.start, b.pos(), nil)
			if suffix != summarySuffix && !errors.Is(err, ErrGap) {
				t.Errorf("byte %d of %s: %v", at, name, err)
			}
			data[at] ^= 0x10
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if problems, err := a.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestSettleDoubles: a segment that is there twice is there once, whichever of
// the two is damaged.
func TestSettleDoubles(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{"", compressedSuffix, partialSuffix} {
		b := longWAL(3, nil)
		a := store(t, b)
		a.Close()
		partial := bytes.Clone(b.Bytes()[smallSegment : 2*smallSegment])
		path := filepath.Join(a.dir, "1", SegmentName(1, 2, smallSegment))
		compressed, err := os.ReadFile(path + compressedSuffix)
		if err != nil {
			t.Fatal(err)
		}
		if damage == compressedSuffix {
			compressed[len(compressed)/2] ^= 1
		} else if damage == partialSuffix {
			partial[len(partial)/2] ^= 1
		}
		err = errors.Join(os.WriteFile(path+compressedSuffix, compressed, 0o600), os.WriteFile(path+partialSuffix, partial, 0o600))
		if err != nil {
			t.Fatal(err)
		}
		expectWAL(t, a.dir, b, b.pos())
		if _, err := os.Lstat(path + partialSuffix); !notExist(err) {
			t.Errorf("the partial file is left: %v", err)
		}
	}
}

// TestMissingSummaries: they are made again.
func TestMissingSummaries(t *testing.T) {
	t.Parallel()
	b := longWAL(4, nil)
	a := store(t, b)
	before, err := a.Window(t.Context(), 1, 1, b.start)
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
	after, err := a.Window(t.Context(), 1, 1, b.start)
	if err != nil || before != after || after.To != b.pos() {
		t.Errorf("before %+v, after %+v, %v; the end is %v", before, after, err, b.pos())
	}
	for file, old := range want {
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, old) {
			t.Errorf("%s is not as before: %v", filepath.Base(file), err)
		}
	}
}

// TestReadOnly: an archive in use can be read, and is left as it is.
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
	if err := r.Check(t.Context(), 1, 1, b.start, b.pos(), nil); err != nil {
		t.Error(err)
	}
	if _, err := r.Writer(1); err == nil {
		t.Error("it can be written to")
	}
}

// TestStalePages: a partial file that holds an old segment's pages behind the
// new ones ends where the new ones do; and one that continues into a segment
// that is missing ends at the last whole record.
func TestStalePages(t *testing.T) {
	t.Parallel()
	old, b := longWAL(3, nil), longWAL(3, map[int]int64{3: 77})
	cut := 30 * pageSize
	dir := filepath.Join(t.TempDir(), "wal")
	a, w, err := openWriter(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	a.Close()
	stale := bytes.Clone(old.Bytes()[smallSegment : 2*smallSegment]) // addresses of the second
	copy(stale, b.Bytes()[:cut])
	path := filepath.Join(dir, "1", SegmentName(1, 1, smallSegment)+partialSuffix)
	if err := os.WriteFile(path, stale, 0o600); err != nil {
		t.Fatal(err)
	}
	a, w, err = openWriter(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, end, _ := w.Latest()
	if end > b.start+LSN(cut) || end < b.start+LSN(cut)-8*pageSize {
		t.Errorf("the partial file ends at %v, its new pages at %v", end, b.start+LSN(cut))
	}
	if err := appendAll(w, b, func(LSN) {}); err != nil {
		t.Error(err)
	}
	w.Close()
	a.Close()
	expectWAL(t, dir, b, b.pos())
	// Without the third segment the record that reaches into it is not whole.
	last := filepath.Join(dir, "1", SegmentName(1, 3, smallSegment)+partialSuffix)
	if err := os.Remove(last); err != nil {
		t.Fatal(err)
	}
	if a, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	target := Target{Incarnation: 1, Since: b.start, LSN: b.start + 2*smallSegment}
	resolution, err := a.Resolve(t.Context(), target)
	if err != nil || resolution.Last.End > target.LSN || resolution.Last.End < target.LSN-60000 {
		t.Errorf("%+v, %v", resolution, err)
	}
	expectGap(t, a.Covers(1, 1, b.start, b.pos()), SegmentName(1, 3, smallSegment), "missing")
}

// TestResolveTimes: stamps overtake each other, and clocks are set.
func TestResolveTimes(t *testing.T) {
	t.Parallel()
	second := func(s float64) time.Time { return fromMicros(int64(s * 1e6)) }
	// 20 is overtaken by 21 and 22; from 40 on the clock is 200 s ahead, until
	// it is set back at 60.
	stamps := map[int]int64{20: 21, 21: 22, 22: 20}
	for n := 40; n < 60; n++ {
		stamps[n] = int64(n) + 200
	}
	b := longWAL(3, stamps)
	a := store(t, b)
	for _, tt := range []struct {
		target float64
		commit float64 // the last that is there, by its stamp
	}{
		{10, 10},
		{10.5, 10},
		{20.5, 19}, // 20 was answered after 21
		{21.5, 21},
		{23, 23},
		{45, 39}, // no clock ever said 45 before it had said 240
		{62, 62}, // in the second pass
		{80, 80},
	} {
		r, err := a.Resolve(t.Context(), Target{Incarnation: 1, Since: b.start, Time: second(tt.target)})
		if err != nil {
			t.Errorf("%v: %v", tt.target, err)
			continue
		}
		if !r.Commit.Equal(second(tt.commit)) || r.Limit.Start < r.Last.Start {
			t.Errorf("%v: %+v, want the commit stamped %v", tt.target, r, tt.commit)
		}
	}
	_, err := a.Resolve(t.Context(), Target{Incarnation: 1, Since: b.start, Time: second(1e6)})
	if outside := new(OutsideError); !errors.As(err, &outside) || outside.LatestLSN != b.pos() {
		t.Errorf("a target in the future: %v", err)
	}
	if r, err := a.Resolve(t.Context(), Target{Incarnation: 1, Since: b.start, Time: second(1e6), Idle: second(2e6)}); err != nil || r.Limit.End != b.pos() {
		t.Errorf("a target in an idle time: %+v, %v", r, err)
	}
}
