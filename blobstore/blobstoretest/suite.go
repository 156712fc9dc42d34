package blobstoretest

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/blobstore"
)

// Run checks a backend. Open opens the store in dir, a directory the suite
// owns; it is called again with the same dir after Close.
func Run(t *testing.T, open func(t *testing.T, dir string) Backend) {
	for name, test := range map[string]func(*testing.T, *session){
		"round trip":              roundTrip,
		"same content twice":      sameContentTwice,
		"nothing before commit":   nothingBeforeCommit,
		"abort leaves nothing":    abortLeavesNothing,
		"ending twice":            endingTwice,
		"truncated write":         truncatedWrite,
		"delete while read":       deleteWhileRead,
		"remove is idempotent":    removeIsIdempotent,
		"hostile references":      hostileReferences,
		"concurrent creates":      concurrentCreates,
		"walk is what is there":   walkIsWhatIsThere,
		"walk stops":              walkStops,
		"reopening":               reopening,
		"closed store":            closedStore,
		"readers share one blob":  readersShareOneBlob,
		"content is the reader's": contentIsTheReaders,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := &session{t: t, reopen: func() Backend { return open(t, dir) }}
			s.Backend = s.reopen()
			t.Cleanup(func() { s.Close() })
			test(t, s)
		})
	}
}

// session is one test's store and shorthand for using it.
type session struct {
	Backend
	t      *testing.T
	reopen func() Backend
}

func (s *session) create() Writer {
	s.t.Helper()
	w, err := s.Create(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

func (s *session) put(content string) blobstore.Ref {
	s.t.Helper()
	w := s.create()
	if _, err := io.WriteString(w, content); err != nil {
		s.t.Fatal(err)
	}
	ref, size, err := w.Commit()
	if err != nil || size != int64(len(content)) {
		s.t.Fatalf("Commit answered size %d, error %v for %d bytes", size, err, len(content))
	}
	return ref
}

func (s *session) open(ref blobstore.Ref) Reader {
	s.t.Helper()
	r, err := s.Open(ref)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *session) get(ref blobstore.Ref) string {
	s.t.Helper()
	r := s.open(ref)
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if r.Size() != int64(len(content)) {
		s.t.Errorf("Size is %d, read %d bytes", r.Size(), len(content))
	}
	return string(content)
}

// all returns the size of every blob Walk shows.
func (s *session) all() map[blobstore.Ref]int64 {
	s.t.Helper()
	seen := map[blobstore.Ref]int64{}
	err := s.Walk(func(ref blobstore.Ref, size int64, modTime time.Time) error {
		if _, twice := seen[ref]; twice {
			s.t.Errorf("Walk shows %s twice", ref)
		}
		if age := time.Since(modTime); age < -time.Minute || age > time.Hour {
			s.t.Errorf("Walk says %s was written at %v", ref, modTime)
		}
		seen[ref] = size
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return seen
}

func (s *session) mustBe(want map[blobstore.Ref]int64) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.all()); diff != "" {
		s.t.Errorf("Walk (-want +got):\n%s", diff)
	}
}

func roundTrip(t *testing.T, s *session) {
	for _, content := range []string{"", "a", strings.Repeat("0123456789", 500_000)} {
		w := s.create()
		for part := []byte(content); len(part) > 0; {
			n := min(len(part), 65_537)
			if _, err := w.Write(part[:n]); err != nil {
				t.Fatal(err)
			}
			part = part[n:]
		}
		want := crc32.Checksum([]byte(content), crc32.MakeTable(crc32.Castagnoli))
		if w.CRC32C() != want {
			t.Errorf("CRC32C is %08x, want %08x", w.CRC32C(), want)
		}
		ref, _, err := w.Commit()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.get(ref); got != content {
			t.Errorf("%d bytes came back as %d others", len(content), len(got))
		}
	}
}

func sameContentTwice(t *testing.T, s *session) {
	a, b := s.put("same"), s.put("same")
	if a == b {
		t.Fatal("two blobs share a reference: removing one would remove both")
	}
	if err := s.Remove(a); err != nil {
		t.Fatal(err)
	}
	if got := s.get(b); got != "same" {
		t.Errorf("the other blob is %q", got)
	}
}

func nothingBeforeCommit(t *testing.T, s *session) {
	w := s.create()
	defer w.Abort()
	if _, err := io.WriteString(w, "unfinished"); err != nil {
		t.Fatal(err)
	}
	s.mustBe(map[blobstore.Ref]int64{})
}

func abortLeavesNothing(t *testing.T, s *session) {
	w := s.create()
	io.WriteString(w, "unwanted")
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	s.mustBe(map[blobstore.Ref]int64{})
}

func endingTwice(t *testing.T, s *session) {
	w := s.create()
	ref, _, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort after Commit: %v", err)
	}
	if _, _, err := w.Commit(); err == nil {
		t.Error("a second Commit succeeded")
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("Write after Commit succeeded")
	}
	s.mustBe(map[blobstore.Ref]int64{ref: 0})

	w = s.create()
	if err := errors.Join(w.Abort(), w.Abort()); err != nil {
		t.Errorf("Abort twice: %v", err)
	}
	if _, _, err := w.Commit(); err == nil {
		t.Error("Commit after Abort succeeded")
	}
	s.mustBe(map[blobstore.Ref]int64{ref: 0})
}

// truncatedWrite is an upload whose client went away.
func truncatedWrite(t *testing.T, s *session) {
	gone := errors.New("client went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	w, err := s.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "half of")
	cancel(gone)
	if _, err := io.WriteString(w, " it"); !errors.Is(err, gone) {
		t.Errorf("Write after the end of its context: %v", err)
	}
	if _, _, err := w.Commit(); !errors.Is(err, gone) {
		t.Errorf("Commit after the end of its context: %v", err)
	}
	if _, err := s.Create(ctx); !errors.Is(err, gone) {
		t.Errorf("Create after the end of its context: %v", err)
	}
	s.mustBe(map[blobstore.Ref]int64{})
}

func deleteWhileRead(t *testing.T, s *session) {
	content := strings.Repeat("old bytes ", 100_000)
	ref := s.put(content)
	r := s.open(ref)
	defer r.Close()
	head := make([]byte, 100)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ref); err != nil {
		t.Fatal(err)
	}
	s.put(strings.Repeat("new bytes ", 100_000))
	rest, err := io.ReadAll(r)
	if err != nil || string(head)+string(rest) != content {
		t.Errorf("the open reader read other bytes, error %v", err)
	}
	if _, err := s.Open(ref); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("Open after Remove: %v", err)
	}
}

func removeIsIdempotent(t *testing.T, s *session) {
	a, b, c := s.put("a"), s.put("b"), s.put("c")
	if err := s.Remove(a, a); err != nil {
		t.Error(err)
	}
	if err := s.Remove(a, b); err != nil {
		t.Error(err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	s.mustBe(map[blobstore.Ref]int64{c: 1})
}

func hostileReferences(t *testing.T, s *session) {
	kept := s.put("kept")
	for _, ref := range []blobstore.Ref{
		"", ".", "..", "/", "../../etc/passwd", "/etc/passwd", "a\x00b", "format", "incoming/x",
		kept + "/..", kept + "\n", "../" + kept, blobstore.Ref(strings.ToUpper(string(kept))) + "x",
		blobstore.Ref(bytes.Repeat([]byte("a"), 100_000)),
	} {
		if _, err := s.Open(ref); !errors.Is(err, blobstore.ErrBadRef) {
			t.Errorf("Open(%.40q): %v", ref, err)
		}
		if err := s.Remove(ref); !errors.Is(err, blobstore.ErrBadRef) {
			t.Errorf("Remove(%.40q): %v", ref, err)
		}
	}
	s.mustBe(map[blobstore.Ref]int64{kept: 4})
}

func concurrentCreates(t *testing.T, s *session) {
	const writers, each = 16, 12
	var (
		mu   sync.Mutex
		want = map[blobstore.Ref]int64{}
		wg   sync.WaitGroup
	)
	for i := range writers {
		wg.Go(func() {
			for j := range each {
				w, err := s.Create(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				w.Write(bytes.Repeat([]byte{byte(i)}, j*1000))
				if j%4 == 3 {
					w.Abort()
					continue
				}
				ref, size, err := w.Commit()
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				want[ref] = size
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(want) != writers*each*3/4 {
		t.Errorf("%d different references", len(want))
	}
	s.mustBe(want)
}

func walkIsWhatIsThere(t *testing.T, s *session) {
	want := map[blobstore.Ref]int64{}
	for i := range 30 {
		ref := s.put(strings.Repeat("x", i))
		if i%3 == 0 {
			if err := s.Remove(ref); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want[ref] = int64(i)
	}
	s.mustBe(want)
	err := s.Walk(func(ref blobstore.Ref, _ int64, _ time.Time) error { return s.Remove(ref) })
	if err != nil {
		t.Errorf("removing while walking: %v", err)
	}
	s.mustBe(map[blobstore.Ref]int64{})
}

func walkStops(t *testing.T, s *session) {
	s.put("a")
	s.put("b")
	enough, calls := errors.New("enough"), 0
	err := s.Walk(func(blobstore.Ref, int64, time.Time) error { calls++; return enough })
	if err != enough || calls != 1 {
		t.Errorf("Walk called %d times and answered %v", calls, err)
	}
}

func reopening(t *testing.T, s *session) {
	kept, removed := s.put("kept"), s.put("removed")
	if err := s.Remove(removed); err != nil {
		t.Fatal(err)
	}
	io.WriteString(s.create(), "unfinished")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Backend = s.reopen()
	if got := s.get(kept); got != "kept" {
		t.Errorf("after reopening: %q", got)
	}
	more := s.put("more")
	s.mustBe(map[blobstore.Ref]int64{kept: 4, more: 4})
}

func closedStore(t *testing.T, s *session) {
	w, r := s.create(), s.open(s.put("readable"))
	defer r.Close()
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context()); !errors.Is(err, blobstore.ErrClosed) {
		t.Errorf("Create: %v", err)
	}
	if _, _, err := w.Commit(); !errors.Is(err, blobstore.ErrClosed) {
		t.Errorf("Commit: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort: %v", err)
	}
	if content, err := io.ReadAll(r); err != nil || string(content) != "readable" {
		t.Errorf("open reader: %q, %v", content, err)
	}
}

func readersShareOneBlob(t *testing.T, s *session) {
	ref := s.put(strings.Repeat("0123456789", 1000))
	a, b := s.open(ref), s.open(ref)
	defer a.Close()
	defer b.Close()
	if _, err := a.Seek(-5, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	tail, _ := io.ReadAll(a)
	head := make([]byte, 3)
	io.ReadFull(b, head)
	middle := make([]byte, 4)
	if _, err := b.ReadAt(middle, 5003); err != nil {
		t.Fatal(err)
	}
	if got := string(tail) + " " + string(head) + " " + string(middle); got != "56789 012 3456" {
		t.Errorf("read %q", got)
	}
	if n, err := b.ReadAt(middle, 9998); n != 2 || err != io.EOF {
		t.Errorf("ReadAt over the end: %d, %v", n, err)
	}
}

func contentIsTheReaders(t *testing.T, s *session) {
	r := s.open(s.put("0123456789"))
	defer r.Close()
	if _, err := r.Seek(4, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r.Content())
	if err != nil || string(rest) != "456789" {
		t.Errorf("Content read %q, %v", rest, err)
	}
}
