package blobstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// journalCopy is what a reader of a Tap has of the journal.
type journalCopy struct {
	segments map[uint32][]byte
	dropped  map[uint32]bool
	removed  []Ref
	last     time.Time
}

func newJournalCopy() *journalCopy {
	return &journalCopy{segments: map[uint32][]byte{}, dropped: map[uint32]bool{}}
}

// read applies all changes that wait when it is called, and fails the test unless each continues the one before.
func (c *journalCopy) read(t testing.TB, tap *Tap, limit int) {
	t.Helper()
	for began := time.Now(); !c.last.After(began); {
		changes, err := tap.Next(limit, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) == 0 {
			return
		}
		for _, change := range changes {
			c.apply(t, change)
		}
	}
}

func (c *journalCopy) apply(t testing.TB, change Change) {
	t.Helper()
	if change.Time.Before(c.last) {
		t.Errorf("a change of %s follows one of %s", change.Time, c.last)
	}
	c.last = change.Time
	switch {
	case change.Removed != "":
		c.removed = append(c.removed, change.Removed)
	case len(change.Bytes) == 0:
		c.dropped[change.Segment] = true
	case int(change.From) != len(c.segments[change.Segment]):
		t.Errorf("segment %d: bytes from %d follow %d", change.Segment, change.From, len(c.segments[change.Segment]))
	default:
		c.segments[change.Segment] = append(c.segments[change.Segment], change.Bytes...)
	}
}

// write makes a store of the copy, in the directory "store" below dir.
func (c *journalCopy) write(t testing.TB, dir string) {
	t.Helper()
	store := filepath.Join(dir, "store")
	if err := os.MkdirAll(filepath.Join(store, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{formatFile: []byte(formatLine(formatVersion))}
	for number, content := range c.segments {
		files[filepath.Join("journal", directoryName(number))] = content
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(store, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func openTap(t testing.TB, s *Store, from Position) *Tap {
	t.Helper()
	tap, err := s.Tap(from, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tap.Close)
	return tap
}

// TestTap reads the journal while others publish: at any time, what was acknowledged before a call of Next is in the copy.
func TestTap(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{SegmentSize: 3000})
	before, err := publish(t, s, "published before the tap was opened")
	if err != nil {
		t.Fatal(err)
	}
	tap, copied := openTap(t, s, 0), newJournalCopy()
	acknowledged, mu := map[Ref]string{before: "published before the tap was opened"}, sync.Mutex{}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for writer := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				content := fmt.Sprintf("%*d %d", 1+n*977%2000, writer, n)
				ref, err := publish(t, s, content)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acknowledged[ref] = content
				mu.Unlock()
				time.Sleep(time.Millisecond)
			}
		})
	}
	for n := 0; n < 10 || len(copied.segments) < 3; n++ {
		mu.Lock()
		want := maps.Clone(acknowledged)
		mu.Unlock()
		copied.read(t, tap, 10_000)
		left := t.TempDir()
		copied.write(t, left)
		for _, problem := range judge(left, want) {
			t.Error(problem)
		}
	}
	close(done)
	wg.Wait()
	copied.read(t, tap, 10_000)
	if bytes, oldest := tap.Waiting(); bytes != 0 || !oldest.IsZero() {
		t.Errorf("%d bytes wait, since %s", bytes, oldest)
	}
	for _, segment := range s.Journal() {
		if int(segment.Size) != len(copied.segments[segment.Number]) {
			t.Errorf("segment %d has %d bytes, %d were read", segment.Number, segment.Size, len(copied.segments[segment.Number]))
		}
	}
}

// TestTapPowerCut cuts the power: what the tap returned is on the disk, and nothing else of the journal is.
func TestTapPowerCut(t *testing.T) {
	fs, parent := newPowerFS(func(string, string) bool { return false }), filepath.Join(t.TempDir(), "parent")
	if err := fs.OS.Mkdir(parent); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, filepath.Join(parent, "store"), Options{SegmentSize: 2000, fs: fs})
	tap, copied, random := openTap(t, s, 0), newJournalCopy(), rand.New(rand.NewPCG(3, 4))
	for range 50 {
		for range random.IntN(4) {
			if _, err := publish(t, s, strings.Repeat("x", random.IntN(300))); err != nil {
				t.Fatal(err)
			}
		}
		copied.read(t, tap, 1000)
		left := t.TempDir()
		fs.cut(t, parent, left)
		for number, content := range copied.segments {
			kept, err := os.ReadFile(filepath.Join(left, "store", "journal", directoryName(number)))
			if err != nil || !bytes.HasPrefix(kept, content) {
				t.Fatalf("segment %d: %d bytes were read, %d are left, %v", number, len(content), len(kept), err)
			}
		}
	}
	if len(copied.segments) < 2 {
		t.Errorf("%d segments", len(copied.segments))
	}
}

// TestTapReadsDroppedSegments: a segment that was compacted away before it was read remains readable, up to a bound, and the
// drop follows everything before it.
func TestTapReadsDroppedSegments(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{SegmentSize: 500})
	tap, copied := openTap(t, s, 0), newJournalCopy()
	for n := range 20 {
		if _, err := publish(t, s, strings.Repeat("x", 100)+fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	dropped := s.Segments()
	whole := map[uint32][]byte{}
	for i, number := range dropped {
		whole[number] = mustReadFile(t, s.journal.path(number))
		if i == 1 { // the tap has it open
			if _, err := tap.Next(1, time.Time{}); err != nil {
				t.Fatal(err)
			}
			copied.segments[dropped[0]] = whole[dropped[0]][:segmentHeader]
		}
		if err := s.DropSegment(number); err != nil {
			t.Fatal(err)
		}
	}
	copied.read(t, tap, 300)
	for _, number := range dropped {
		if !bytes.Equal(copied.segments[number], whole[number]) || !copied.dropped[number] {
			t.Errorf("segment %d: %d of %d bytes, dropped %v", number, len(copied.segments[number]), len(whole[number]), copied.dropped[number])
		}
	}
	if len(tap.held) != 0 {
		t.Errorf("%v is still held", tap.held)
	}
}

func mustReadFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTapPassesOverWhatIsTooMuch: what was removed and is too much to be kept is passed over.
func TestTapPassesOverWhatIsTooMuch(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{SegmentSize: 500})
	tap, copied := openTap(t, s, 0), newJournalCopy()
	for range 5 {
		if _, err := publish(t, s, strings.Repeat("x", 600)); err != nil {
			t.Fatal(err)
		}
	}
	tap.held["other"] = tapHeld
	all := s.Segments()
	if err := s.DropSegment(all[0]); err != nil {
		t.Fatal(err)
	}
	copied.read(t, tap, 300)
	if len(copied.segments[all[0]]) > 0 || !copied.dropped[all[0]] || len(copied.segments) != len(all) {
		t.Errorf("%d segments, dropped %v", len(copied.segments), copied.dropped)
	}
	if bytes, _ := tap.Waiting(); bytes != 0 {
		t.Errorf("%d bytes wait", bytes)
	}
}

// TestTapFrom opens taps at positions that were reached before, also after a restart.
func TestTapFrom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir, Options{SegmentSize: 500})
	for range 20 {
		if _, err := publish(t, s, strings.Repeat("x", 90)); err != nil {
			t.Fatal(err)
		}
	}
	all := openTap(t, s, PositionOf(1, 0))
	whole := newJournalCopy()
	whole.read(t, all, 1<<20)
	all.Close()
	for _, reopened := range []bool{false, true} {
		if reopened {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openStore(t, dir, Options{SegmentSize: 500})
		}
		for number, content := range whole.segments {
			for _, offset := range []int{0, 10, len(content) - 1, len(content)} {
				tap := openTap(t, s, PositionOf(number, int64(offset)))
				if offset == 0 && number == 0 {
					continue
				}
				rest := newJournalCopy()
				rest.segments[number] = slices.Clone(content[:offset])
				rest.read(t, tap, 200)
				tap.Close()
				for n, want := range whole.segments {
					if n >= number && !bytes.Equal(rest.segments[n], want) {
						t.Errorf("from %d %d: segment %d has %d bytes, not %d", number, offset, n, len(rest.segments[n]), len(want))
					}
				}
			}
		}
	}
	tap := openTap(t, s, 0)
	if bytes, _ := tap.Waiting(); bytes != 0 {
		t.Errorf("after a restart %d bytes wait", bytes)
	}
	if _, err := s.Tap(0, func() {}); err == nil {
		t.Error("it was tapped twice")
	}
}

// TestTapUntil returns nothing newer than a time after the first change.
func TestTapUntil(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{})
	tap := openTap(t, s, 0)
	for range 3 {
		if _, err := publish(t, s, "x"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	for n := range 4 { // the first is that of the segment itself
		changes, err := tap.Next(1<<20, time.Unix(0, 1))
		if err != nil || len(changes) != 1 {
			t.Fatalf("call %d: %d changes, %v", n, len(changes), err)
		}
	}
}

// TestTapThinsItsTimes: however much waits, the tap remembers a limited number of times, and no byte is lost.
func TestTapThinsItsTimes(t *testing.T) {
	changes := []tapChange{{at: 1, segment: 1, from: 0, end: 10}}
	for n := range int64(100) {
		changes = append(changes, tapChange{at: 2 + n, segment: 1, from: 10 + n, end: 11 + n})
	}
	changes = append(changes, tapChange{at: 200, removed: "a"}, tapChange{at: 201, segment: 2, from: 0, end: 5}, tapChange{at: 202, segment: 1})
	for range 10 {
		changes = thin(changes)
	}
	want := []tapChange{
		{at: 101, segment: 1, from: 0, end: 110},
		{at: 201, segment: 2, from: 0, end: 5},
		{at: 202, segment: 1},
	}
	if !slices.Equal(changes, want) {
		t.Errorf("got %v, want %v", changes, want)
	}
}

// TestTapForgetsRemovals: what a tap remembers while nobody reads it is bounded, whatever is removed meanwhile.
func TestTapForgetsRemovals(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{})
	if _, err := put(t, s, "first"); err != nil {
		t.Fatal(err)
	}
	tap := openTap(t, s, 0)
	began := time.Now()
	for n := range 10 * tapChanges {
		tap.removed(Ref(fmt.Sprintf("%08x-%032x", 1, n)))
		if n%tapChanges == 0 {
			if _, err := put(t, s, "more"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(tap.changes); n > 2*tapChanges {
		t.Errorf("%d changes wait", n)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	copied := newJournalCopy()
	copied.read(t, tap, 1<<20)
	if n := len(copied.removed); n > 2*tapChanges {
		t.Errorf("%d removals are told", n)
	}
}

// TestTapBodies copies files while they are published and removed.
func TestTapBodies(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{Inline: 10})
	tap := openTap(t, s, 0)
	big := func(n int) (Ref, string) {
		content := strings.Repeat(fmt.Sprint("a large one ", n), 10)
		w, err := s.Create(t.Context())
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
		secured, err := w.Secure()
		if err != nil {
			t.Fatal(err)
		}
		if ref, err := w.Publish([]byte("note"), nil); err != nil || ref != secured {
			t.Fatal(ref, err)
		}
		return secured, content
	}
	refs, contents := make([]Ref, 4), make([]string, 4)
	for n := range refs {
		refs[n], contents[n] = big(n)
	}
	take := func(ref Ref, content string) *Body {
		t.Helper()
		b, r, err := tap.Take()
		if err != nil || b == nil || b.Ref != ref {
			t.Fatalf("took %v, %v, want %s", b, err, ref)
		}
		defer r.Close()
		if got, err := io.ReadAll(r); err != nil || string(got) != content {
			t.Errorf("read %q, %v", got, err)
		}
		return b
	}
	if err := s.Remove(refs[1], refs[2]); err != nil { // before they were copied
		t.Fatal(err)
	}
	first := take(refs[0], contents[0])
	if err := s.Remove(refs[0]); err != nil { // while it is copied
		t.Fatal(err)
	}
	if sum, oldest := tap.Bodies(); sum != int64(4*len(contents[0])) || !oldest.Equal(first.Time) {
		t.Errorf("%d bytes wait, since %s", sum, oldest)
	}
	if !tap.Done(first) {
		t.Error("the removal of a file while it was copied is lost")
	}
	for n := 1; n <= 2; n++ {
		if !tap.Done(take(refs[n], contents[n])) {
			t.Error("the removal of a file before it was copied is lost")
		}
	}
	last := take(refs[3], contents[3])
	if err := tap.Offer(t.Context(), refs[3], 1); err != nil {
		t.Error(err)
	}
	if tap.Done(last) {
		t.Error("a file that is there counts as removed")
	}
	if b, _, err := tap.Take(); b != nil || err != nil {
		t.Errorf("took %v, %v", b, err)
	}
	copied := newJournalCopy()
	copied.read(t, tap, 1<<20)
	if len(copied.removed) > 0 {
		t.Errorf("removed %v", copied.removed)
	}
	if err := s.Remove(refs[3]); err != nil {
		t.Fatal(err)
	}
	copied.read(t, tap, 1<<20)
	if !slices.Equal(copied.removed, []Ref{refs[3]}) {
		t.Errorf("removed %v", copied.removed)
	}
	if err := tap.Copied(t.Context()); err != nil {
		t.Error(err)
	}
	if len(tap.held) > 0 || len(tap.pending) > 0 {
		t.Errorf("held %v, pending %v", tap.held, tap.pending)
	}
}

// TestTapOffersWait: files that are offered wait until no others do, and Copied waits for all.
func TestTapOffersWait(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{Inline: 1})
	var refs []Ref
	for n := range 20 {
		ref, err := put(t, s, fmt.Sprint("content ", n))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	tap := openTap(t, s, 0)
	var copied []Ref
	var wg sync.WaitGroup
	wg.Go(func() {
		for len(copied) < len(refs) && t.Context().Err() == nil {
			b, r, err := tap.Take()
			if err != nil {
				t.Error(err)
				return
			}
			if b == nil {
				time.Sleep(time.Millisecond)
				continue
			}
			copied = append(copied, b.Ref)
			r.Close()
			tap.Done(b)
		}
	})
	for _, ref := range refs {
		if err := tap.Offer(t.Context(), ref, 9); err != nil {
			t.Fatal(err)
		}
	}
	if err := tap.Copied(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if !slices.Equal(copied, refs) {
		t.Errorf("copied %v", copied)
	}
	if err := s.Remove(refs...); err != nil {
		t.Fatal(err)
	}
	if _, err := s.openFile(refs[0]); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}
