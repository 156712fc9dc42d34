package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// directory returns an empty store and keys.
func directory(t testing.TB) objectstore.Store {
	t.Helper()
	s, err := objectstore.Open(t.Context(), "file://"+t.TempDir(), objectstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func ring(t testing.TB) *sealed.Ring {
	t.Helper()
	r, err := sealed.NewRing(sealed.NewKey(1))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func repository(t testing.TB, s objectstore.Store, keys *sealed.Ring) *Repository {
	t.Helper()
	r, err := NewRepository(s, keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// flaky is a store that fails or loses answers.
type flaky struct {
	objectstore.Store
	mu     sync.Mutex
	calls  int
	counts map[string]int
	fault  func(call int, act, key string) fault
}

type fault int

const (
	none  fault = iota
	fails       // nothing happens, and an error comes back
	loses       // it happens, and an error comes back
	hangs       // it happens when the context ends
)

func (f *flaky) next(act, key string) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.counts == nil {
		f.counts = map[string]int{}
	}
	f.counts[act]++
	if f.fault == nil {
		return none
	}
	return f.fault(f.calls, act, key)
}

func (f *flaky) set(fault func(call int, act, key string) fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.calls = fault, 0
}

func (f *flaky) count(act string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[act]
}

func (f *flaky) unavailable(act, key string) error {
	return &objectstore.Error{Act: act, Key: key, Store: "test", Kind: objectstore.ErrUnavailable}
}

func (f *flaky) Create(ctx context.Context, key string, body objectstore.Body, opts objectstore.CreateOptions) error {
	switch f.next("create", key) {
	case fails:
		return f.unavailable("create", key)
	case loses:
		if err := f.Store.Create(ctx, key, body, opts); err != nil {
			return err
		}
		return f.unavailable("create", key)
	case hangs:
		<-ctx.Done()
		if err := f.Store.Create(context.WithoutCancel(ctx), key, body, opts); err != nil {
			return err
		}
		return ctx.Err()
	}
	return f.Store.Create(ctx, key, body, opts)
}

func (f *flaky) Get(ctx context.Context, key string, r objectstore.Range) (*objectstore.Object, error) {
	if f.next("get", key) != none {
		return nil, f.unavailable("get", key)
	}
	return f.Store.Get(ctx, key, r)
}

func (f *flaky) List(ctx context.Context, prefix, after string) iter.Seq2[objectstore.Info, error] {
	if f.next("list", prefix) != none {
		return func(yield func(objectstore.Info, error) bool) {
			yield(objectstore.Info{}, f.unavailable("list", prefix))
		}
	}
	return f.Store.List(ctx, prefix, after)
}

// script is a Source of frames that the test adds. Each has a number in its bytes.
type script struct {
	mu     sync.Mutex
	owner  string
	frames []Frame // all, by number
	read   int
	stored int
	held   int // the most frames that were read and not stored
	err    error
}

func (s *script) add(w *Writer, size int) {
	s.mu.Lock()
	b := fmt.Appendf(nil, "%s %d ", s.owner, len(s.frames))
	b = append(b, bytes.Repeat([]byte{byte(len(s.frames))}, max(0, size-len(b)))...)
	s.frames = append(s.frames, Frame{Time: time.Now(), Body: WAL{Owner: s.owner, Generation: 1, Timeline: 1, From: uint64(len(s.frames)), Bytes: b}})
	s.mu.Unlock()
	w.Wake()
}

func (s *script) Next(_ context.Context, limit int, until time.Time) ([]Frame, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	first := s.read
	for n := 0; s.read < len(s.frames); s.read++ {
		size := len(s.frames[s.read].Body.(WAL).Bytes)
		late := !until.IsZero() && s.frames[s.read].Time.After(until)
		if n += size; (n > limit || late) && s.read > first {
			break
		}
	}
	s.held = max(s.held, s.read-s.stored)
	return slices.Clone(s.frames[first:s.read]), nil
}

func (s *script) Stored(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(n) < s.stored {
		panic("Stored goes back")
	}
	s.stored = int(n)
}

func (s *script) Waiting() Waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == len(s.frames) {
		return Waiting{}
	}
	w := Waiting{Oldest: s.frames[s.read].Time}
	for _, f := range s.frames[s.read:min(len(s.frames), s.read+64)] {
		w.Bytes += int64(len(f.Body.(WAL).Bytes))
	}
	return w
}

func (s *script) acknowledged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored
}

// rewind makes the script a Source for the next Writer, from a number on.
func (s *script) rewind(n int) *script {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &script{owner: s.owner, frames: s.frames[n:], read: 0}
}

func claim(t testing.TB, r *Repository, name string, takeOver bool) *History {
	t.Helper()
	h, err := r.Claim(t.Context(), time.Now(), ClaimOptions{Machine: name, Token: name, Known: []string{name}, TakeOver: takeOver})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func open(t testing.TB, h *History, o Options, sources ...Source) *Writer {
	t.Helper()
	w, err := NewWriter(t.Context(), h, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		w.Add(s)
	}
	return w
}

// kill ends a Writer as the death of its process does.
func kill(w *Writer) {
	w.cancel(errors.New("killed"))
	w.tasks.Wait()
}

// texts returns what a reader sees of each owner, and fails the test unless the frames
// of each are numbered without a hole.
func texts(t testing.TB, r *Repository, c *Checkpoint, until time.Time) map[string]int {
	t.Helper()
	h, err := r.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for f, err := range h.Frames(t.Context(), c, until) {
		if err != nil {
			t.Fatal(err)
		}
		wal := f.Body.(WAL)
		var owner string
		var n int
		if _, err := fmt.Sscanf(string(wal.Bytes), "%s %d ", &owner, &n); err != nil || owner != wal.Owner {
			t.Fatalf("a frame of %q: %.20q", wal.Owner, wal.Bytes)
		}
		if _, later := seen[owner]; !later && c != nil {
			seen[owner] = n
		}
		if n > seen[owner] {
			t.Fatalf("after frame %d of %s comes %d", seen[owner], owner, n)
		}
		seen[owner] = max(seen[owner], n+1) // a frame may be there twice
	}
	return seen
}

func flush(t testing.TB, w *Writer) {
	t.Helper()
	if _, err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestWriteAndRead(t *testing.T) {
	r := repository(t, directory(t), ring(t))
	a, b := &script{owner: "a"}, &script{owner: "b"}
	w := open(t, claim(t, r, "one", false), Options{}, a, b)
	for range 100 {
		a.add(w, 1000)
		b.add(w, 50_000)
	}
	flush(t, w)
	if a.acknowledged() != 100 || b.acknowledged() != 100 {
		t.Errorf("%d and %d of 100 frames are acknowledged", a.acknowledged(), b.acknowledged())
	}
	if s := w.Status(); s.Lag != 0 || s.Backlog != 0 || s.Problem.Err != nil || s.Counts.LogObjects == 0 {
		t.Errorf("the status of what is stored: %+v", s)
	}
	if seen := texts(t, r, nil, time.Time{}); seen["a"] != 100 || seen["b"] != 100 {
		t.Errorf("a reader sees %v of 100 each", seen)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error("closed twice:", err)
	}
	if _, err := w.Flush(t.Context()); !errors.Is(err, ErrClosed) {
		t.Error("Flush after Close:", err)
	}
}

func TestFiles(t *testing.T) {
	r := repository(t, directory(t), ring(t))
	w := open(t, claim(t, r, "one", false), Options{})
	defer kill(w)
	for _, size := range []int{0, 1, sealed.SegmentSize, 300_000, PartSize, PartSize + 1} {
		content := random(size)
		ref, err := w.Store(t.Context(), bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range [][2]int{{0, size}, {size / 3, size / 2}, {max(0, size-100_000), min(size, 100_000)}, {size, 0}} {
			got, err := readFile(t, r, ref, int64(span[0]), int64(span[1]))
			if err != nil || !bytes.Equal(got, content[span[0]:span[0]+span[1]]) {
				t.Errorf("%d bytes, [%d, +%d): %d bytes, %v", size, span[0], span[1], len(got), err)
			}
		}
		ref.Hash[0] ^= 1
		if _, err := readFile(t, r, ref, 0, -1); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes of another hash: %v", size, err)
		}
	}
	if _, err := w.Store(t.Context(), failing{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("content that cannot be read: %v", err)
	}
}

// TestContentThatChanges: a file that becomes unreadable or shorter while it is sent
// ends Store, and nothing else.
func TestContentThatChanges(t *testing.T) {
	r := repository(t, directory(t), ring(t))
	w := open(t, claim(t, r, "one", false), Options{})
	defer kill(w)
	for _, c := range []*changing{{good: 0}, {good: 1}, {good: 1, short: true}} {
		if _, err := w.Store(t.Context(), c); !isOfContent(err) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if w.Err() != nil {
		t.Error(w.Err())
	}
}

// TestStoreEndsWhileItReads: the content of a file is not read to its end once nobody waits.
func TestStoreEndsWhileItReads(t *testing.T) {
	w := open(t, claim(t, repository(t, directory(t), ring(t)), "one", false), Options{})
	defer kill(w)
	ctx, cancel := context.WithCancel(t.Context())
	c := &endless{cancel: cancel}
	if _, err := w.Store(ctx, c); !errors.Is(err, context.Canceled) || c.reads != 1 {
		t.Errorf("%v after %d reads", err, c.reads)
	}
}

// endless is a large file. Whoever waits for it gives up at the first read.
type endless struct {
	cancel context.CancelFunc
	reads  int
}

func (e *endless) Size() int64 { return 1 << 30 }

func (e *endless) ReadAt(p []byte, _ int64) (int, error) {
	e.cancel()
	e.reads++
	return len(p), nil
}

// changing can be read from the beginning so many times.
type changing struct {
	good  int
	short bool
}

func (c *changing) Size() int64 { return 100 }

func (c *changing) ReadAt(p []byte, at int64) (int, error) {
	if at == 0 {
		c.good--
	}
	if c.good >= 0 {
		return min(len(p), int(100-at)), nil
	}
	if c.short {
		return 0, io.EOF
	}
	return 0, io.ErrNoProgress
}

type failing struct{}

func (failing) Size() int64                       { return 100 }
func (failing) ReadAt([]byte, int64) (int, error) { return 0, io.ErrNoProgress }

func readFile(t testing.TB, r *Repository, ref Reference, offset, length int64) ([]byte, error) {
	t.Helper()
	f, err := r.Open(t.Context(), ref, offset, length)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

func random(size int) []byte {
	b := make([]byte, size)
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// storeEntries returns n entries, each with a small file.
func storeEntries(t testing.TB, w *Writer, n int) (entries []Entry) {
	t.Helper()
	for i := range n {
		content := fmt.Appendf(nil, "content %d", i)
		ref, err := w.Store(t.Context(), bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, Entry{Owner: "db", Kind: "pack", Name: fmt.Sprintf("%05d", i), Ref: ref})
	}
	return entries
}

func checkpoint(t testing.TB, w *Writer, entries []Entry) Point {
	t.Helper()
	p, err := w.Checkpoint(t.Context(), func(context.Context) ([]Entry, error) { return entries, nil })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func find(t testing.TB, r *Repository, at time.Time) (*History, *Checkpoint) {
	t.Helper()
	h, err := r.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := h.Find(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	return h, c
}

func catalog(t testing.TB, r *Repository, c *Checkpoint) (entries []Entry) {
	t.Helper()
	for e, err := range r.Catalog(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

func sorted(entries []Entry) []Entry {
	return slices.SortedFunc(slices.Values(entries), compareEntries)
}
