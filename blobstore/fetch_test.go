package blobstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/durable/faultfs"
)

// awayRef returns a Ref of a file elsewhere, and its content.
func awayRef(n int) (Ref, string) {
	return makeRef(uint32(n%7), fmt.Sprintf("%032x", n*n*7919+n)), strings.Repeat(fmt.Sprint("away ", n, " "), 1+n*1000)
}

// restored returns the directory of a store of which n files are away.
func restored(t testing.TB, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	r, err := NewRestorer(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		ref, content := awayRef(i)
		if err := r.Away(Away{ref, int64(len(content)), bytes.Repeat([]byte{byte(i)}, i%50)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// elsewhere is a fetch that returns the contents of awayRef.
func elsewhere(calls *atomic.Int64) func(context.Context, Away, int64, int64) (io.ReadCloser, error) {
	return func(_ context.Context, a Away, from, n int64) (io.ReadCloser, error) {
		calls.Add(1)
		for i := range 100 {
			if ref, content := awayRef(i); ref == a.Ref && bytes.Equal(a.Location, bytes.Repeat([]byte{byte(i)}, i%50)) {
				return io.NopCloser(strings.NewReader(content[from : from+n])), nil
			}
		}
		return nil, errors.New("it is not there")
	}
}

func TestFetch(t *testing.T) {
	var calls atomic.Int64
	dir := restored(t, 50)
	s := openStore(t, dir, Options{Fetch: elsewhere(&calls)})
	for i := range 50 {
		ref, content := awayRef(i)
		if !s.IsAway(ref) || !s.Has(ref) {
			t.Errorf("%s is not away", ref)
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { mustRead(t, s, ref, content, "a fetch") })
		}
		wg.Wait()
		if s.IsAway(ref) || !s.Has(ref) || calls.Load() != int64(i+1) {
			t.Errorf("%s is away still; %d calls", ref, calls.Load())
		}
	}
	if _, err := s.Open(t.Context(), makeRef(1, strings.Repeat("f", 32))); !errors.Is(err, ErrNotFound) || errors.Is(err, ErrAway) {
		t.Errorf("an unknown file: %v", err)
	}
	left := 0
	if err := s.EachListed(func(_ Away, here bool) error {
		if !here {
			left++
		}
		return nil
	}); err != nil || left > 0 {
		t.Errorf("%d are away, %v", left, err)
	}
	ref, content := awayRef(7)
	if err := s.Evict([]Away{{Ref: ref}}); err != nil {
		t.Fatal(err)
	}
	if none, err := s.NoneAway(t.Context(), noPace); none || err != nil || !s.IsAway(ref) {
		t.Errorf("a file that left the disk was forgotten: %v", err)
	}
	mustRead(t, s, ref, content, "an eviction during fetches")
	for range 2 {
		if none, err := s.NoneAway(t.Context(), noPace); !none || err != nil {
			t.Errorf("%v, %v", none, err)
		}
	}
	s.Close()
	s = openStore(t, dir, Options{})
	want := map[Ref]string{}
	for i := range 50 {
		ref, content := awayRef(i)
		want[ref] = content
	}
	mustHold(t, s, want, "a restart")
}

// TestFetchFails: an error says that the blob is away, a later fetch tries again, and nothing is left over.
func TestFetchFails(t *testing.T) {
	ref, content := awayRef(3)
	var fetch func(context.Context, Away, int64, int64) (io.ReadCloser, error)
	dir := restored(t, 10)
	s := openStore(t, dir, Options{Fetch: func(ctx context.Context, a Away, from, n int64) (io.ReadCloser, error) { return fetch(ctx, a, from, n) }})
	broken := errors.New("broken")
	for name, body := range map[string]io.Reader{
		"too short": strings.NewReader(content[1:]), "too long": strings.NewReader(content + "x"),
		"cut off": io.MultiReader(strings.NewReader(content[:100]), &failing{broken}),
	} {
		fetch = func(context.Context, Away, int64, int64) (io.ReadCloser, error) { return io.NopCloser(body), nil }
		if err := readAll(t.Context(), s, ref); !errors.Is(err, ErrAway) || name != "cut off" && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if left := filesUnder(t, filepath.Join(dir, "incoming")); len(left) > 0 || !s.IsAway(ref) {
			t.Errorf("%s: left %v", name, left)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	fetch = func(ctx context.Context, _ Away, _, _ int64) (io.ReadCloser, error) {
		cancel()
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	if err := readAll(ctx, s, ref); !errors.Is(err, context.Canceled) {
		t.Errorf("the only caller has gone: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the fetch went on without callers")
	}
	fetch = elsewhere(new(atomic.Int64))
	mustRead(t, s, ref, content, "failures")
}

// readAll reads a blob and returns why that failed.
func readAll(ctx context.Context, s *Store, ref Ref) error {
	r, err := s.Open(ctx, ref)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// TestFetchOfRemoved: what is removed while it is fetched does not appear again, and Close ends a fetch.
func TestFetchOfRemoved(t *testing.T) {
	ref, content := awayRef(3)
	begun, proceed := make(chan bool), make(chan bool)
	s := openStore(t, restored(t, 10), Options{Fetch: func(ctx context.Context, _ Away, _, _ int64) (io.ReadCloser, error) {
		begun <- true
		select {
		case <-proceed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return io.NopCloser(strings.NewReader(content)), nil
	}})
	result := make(chan error)
	go func() { result <- readAll(t.Context(), s, ref) }()
	<-begun
	if err := s.Remove(ref); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, ErrAway) {
		t.Errorf("a removed file: %v", err)
	}
	if s.onDisk(ref) || s.Has(ref) {
		t.Error("a removed file is there again")
	}
	other, _ := awayRef(4)
	go func() { result <- readAll(t.Context(), s, other) }()
	<-begun
	s.Close()
	if err := <-result; err == nil {
		t.Error("a closed store fetched")
	}
}

// TestFetchAfterRemoval: a fetch that has found its file listed, and begins once that was removed, does not bring it back.
func TestFetchAfterRemoval(t *testing.T) {
	var calls atomic.Int64
	s := openStore(t, restored(t, 10), Options{Fetch: elsewhere(&calls)})
	ref, _ := awayRef(3)
	a, err := s.away.find(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ref); err != nil {
		t.Fatal(err)
	}
	f, err := s.fetches.join(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if <-f.done; !errors.Is(f.err, ErrNotFound) || s.onDisk(ref) {
		t.Errorf("%v, and there: %v", f.err, s.onDisk(ref))
	}
}

// TestFetchOnAFullDisk fails each file operation of a fetch: the store takes no harm, and the file comes later.
func TestFetchOnAFullDisk(t *testing.T) {
	ref, content := awayRef(30)
	for k := 0; ; k++ {
		dir := restored(t, 40)
		fs := faultfs.FailNth(k, syscall.ENOSPC)
		s, err := Open(dir, Options{fs: fs, Fetch: elsewhere(new(atomic.Int64))})
		if err != nil {
			continue
		}
		mustRead(t, s, ref, content, "of "+fs.Fired())
		s.Close()
		s = openStore(t, dir, Options{Fetch: elsewhere(new(atomic.Int64))})
		mustRead(t, s, ref, content, fs.Fired())
		if left := filesUnder(t, filepath.Join(dir, "incoming")); len(left) > 0 {
			t.Errorf("after %q: left %v", fs.Fired(), left)
		}
		s.Close()
		if fs.Fired() == "" {
			t.Logf("%d operations", k)
			return
		}
	}
}

// TestFetchPowerCut cuts the power after a fetch: what was fetched is there.
func TestFetchPowerCut(t *testing.T) {
	dir := restored(t, 20)
	fs := newPowerFS(func(string, string) bool { return false })
	parent := filepath.Dir(dir)
	fs.adopt(t, parent)
	s := openStore(t, dir, Options{Fetch: elsewhere(new(atomic.Int64)), fs: fs, DirectorySize: 3})
	want := map[Ref]string{}
	for i := range 20 {
		ref, content := awayRef(i)
		mustRead(t, s, ref, content, "a fetch")
		want[ref] = content
		for _, problem := range afterCut(t, fs, parent, want) {
			t.Error(problem)
		}
	}
}

// TestRestore restores what a tap returned, of the log in pieces that overlap, cut off anywhere.
func TestRestore(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{SegmentSize: 1000, Inline: 300})
	tap := openTap(t, s, 0)
	var refs []Ref
	var ends []int // how many changes there were when a blob was acknowledged
	var changes []Change
	for n := range 30 {
		ref, err := publish(t, s, strings.Repeat("x", n*7)+fmt.Sprint(n))
		if err != nil {
			t.Fatal(err)
		}
		next, err := tap.Next(1<<20, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		refs, changes = append(refs, ref), append(changes, next...)
		ends = append(ends, len(changes))
	}
	for cut := 1; cut <= len(changes); cut++ {
		dir := filepath.Join(t.TempDir(), "store")
		r, err := NewRestorer(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range changes[:cut] {
			b := c.Bytes
			if i == cut-1 && c.From > 0 { // not all of the last one
				b = b[:len(b)-1]
			}
			if err := r.Write(c.Segment, c.From, b); err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 { // again
				if err := r.Write(c.Segment, c.From, b); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		replayed := map[Ref]bool{}
		got, err := Open(dir, Options{Deliver: func(entries []Entry) {
			for _, e := range entries {
				replayed[e.Ref] = true
			}
		}, Damaged: func(_ Position, err error) { t.Errorf("cut %d: %v", cut, err) }})
		if err != nil {
			t.Fatal(err)
		}
		for n, ref := range refs {
			if there := ends[n] <= cut-1; there != got.Has(ref) || there != replayed[ref] {
				t.Errorf("cut %d: blob %d: has %v, replayed %v, want %v", cut, n, got.Has(ref), replayed[ref], there)
			}
		}
		got.Close()
	}
}

func TestRestorer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	r, err := NewRestorer(dir)
	if err != nil {
		t.Fatal(err)
	}
	first, other := segmentLine(1, newMark()), segmentLine(1, newMark())
	for name, err := range map[string]error{
		"begin":   r.Write(1, 0, []byte(first+"0123456789")),
		"again":   r.Write(1, 0, []byte(first+"01234")),
		"another": r.Write(2, 0, []byte(segmentLine(2, newMark()))),
		"drop":    errors.Join(r.Drop(3), r.Write(3, 0, []byte(segmentLine(3, newMark()))), r.Drop(3), r.Drop(3)),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, number := range []uint32{1, 4} { // nothing of the other is there, or left behind
		if err := r.Write(number, 1000, []byte("x")); !errors.Is(err, ErrGap) {
			t.Errorf("a gap: %v", err)
		}
	}
	if got := mustReadFile(t, r.path(1)); string(got) != first+"0123456789" {
		t.Errorf("segment 1 is %q", got)
	}
	if err := r.Write(1, 0, []byte(other)); err != nil {
		t.Error(err)
	}
	if got := mustReadFile(t, r.path(1)); string(got) != other {
		t.Errorf("segment 1 is %q, of another machine", got)
	}
	if err := r.Away(Away{Ref: "../x"}); !errors.Is(err, ErrBadRef) {
		t.Error(err)
	}
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("it is a store before it is finished")
	}
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, dir, Options{})
	if got := s.journal.numbers.list(); !slices.Equal(got, []uint32{1, 2}) {
		t.Errorf("segments %v", got)
	}
}

// TestLinkOfAway: a copy of a store knows what is away too.
func TestLinkOfAway(t *testing.T) {
	s := openStore(t, restored(t, 5), Options{})
	dir := filepath.Join(t.TempDir(), "store")
	if err := s.Link(dir); err != nil {
		t.Fatal(err)
	}
	ref, content := awayRef(4)
	mustRead(t, openStore(t, dir, Options{Fetch: elsewhere(new(atomic.Int64))}), ref, content, "a link")
}

// TestDamagedAway: a damaged byte in the first line of a list costs nothing, and one in a record only that.
func TestDamagedAway(t *testing.T) {
	for at := 0; ; at++ {
		dir := restored(t, 2)
		path := filepath.Join(dir, awayDirectory, awaySpan{1, 1}.name())
		b := mustReadFile(t, path)
		if at == len(b) {
			return
		}
		b[at] ^= 4
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		want, record := 2, (len(b)-awayHead)/2
		if at >= awayHead && (at-awayHead)%record < record-1 {
			want = 1
		}
		for n := range 2 {
			if ref, _ := awayRef(n); s.IsAway(ref) {
				want--
			}
		}
		if want != 0 {
			t.Errorf("byte %d: %d more should be away", at, want)
		}
		s.Close()
	}
}

func noPace(context.Context, int) error { return nil }

// TestNoneAwayDamaged: where a file can be fetched is not forgotten while it is damaged here, also if nobody has seen the damage, and
// not while a list is damaged.
func TestNoneAwayDamaged(t *testing.T) {
	t.Parallel()
	m, dir := newMemory(), filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir, Options{Fetch: m.fetch})
	refs, want := files(t, s, 9)
	if err := m.evict(s, refs...); err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs {
		mustRead(t, s, ref, want[ref], "eviction")
	}
	damage := func() {
		t.Helper()
		path, err := refs[5].path(s.blobs)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text[7] ^= 1
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage()
	s.Close()
	s = openStore(t, dir, Options{Fetch: m.fetch})
	if none, err := s.NoneAway(t.Context(), noPace); none || !errors.Is(err, ErrDamaged) {
		t.Errorf("with a damaged file: %v, %v", none, err)
	}
	here := 0
	if err := s.EachListed(func(_ Away, isHere bool) error {
		if isHere {
			here++
		}
		return nil
	}); err != nil || here != len(refs)-1 {
		t.Errorf("%d are here, %v", here, err)
	}
	if err := s.Unlist(refs[5]); err != nil {
		t.Error(err)
	}
	if none, err := s.NoneAway(t.Context(), noPace); none || err != nil {
		t.Errorf("before it was fetched: %v, %v", none, err)
	}
	if err := s.Fetch(t.Context(), refs[5]); err != nil {
		t.Error(err)
	}
	s.Close()
	damageList(t, dir, func(text []byte) { text[awayHead+22] ^= 1 })
	s = openStore(t, dir, Options{Fetch: m.fetch})
	if none, err := s.NoneAway(t.Context(), noPace); none || err != nil {
		t.Errorf("with a damaged list: %v, %v", none, err)
	}
	s.Close()
	damageList(t, dir, func(text []byte) { text[awayHead+22] ^= 1 })
	s = openStore(t, dir, Options{Fetch: m.fetch})
	if none, err := s.NoneAway(t.Context(), noPace); !none || err != nil {
		t.Errorf("with all of them whole: %v, %v", none, err)
	}
	for _, ref := range refs {
		mustRead(t, s, ref, want[ref], "it was forgotten where they were")
	}
}

// TestFetchDamagedWhileGivenUp: what was fetched takes the place of a damaged file also if a reader has given up reading elsewhere
// meanwhile.
func TestFetchDamagedWhileGivenUp(t *testing.T) {
	t.Parallel()
	m := newMemory()
	var s *Store
	giveUp := false
	s = openStore(t, filepath.Join(t.TempDir(), "store"), Options{Fetch: func(ctx context.Context, a Away, from, n int64) (io.ReadCloser, error) {
		if giveUp {
			s.fetches.damaged.Delete(a.Ref)
		}
		return m.fetch(ctx, a, from, n)
	}})
	refs, want := files(t, s, 1)
	if err := m.evict(s, refs...); err != nil {
		t.Fatal(err)
	}
	mustRead(t, s, refs[0], want[refs[0]], "eviction")
	path, err := refs[0].path(s.blobs)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[2] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	local := s.Local()
	giveUp = s.ReadCopy(refs[0])
	if err := s.Fetch(t.Context(), refs[0]); err != nil {
		t.Error(err)
	}
	if got, err := readString(t, s, refs[0]); got != want[refs[0]] || err != nil || s.Local() != local {
		t.Errorf("%q, %v; %d bytes are here, not %d", got, err, s.Local(), local)
	}
}
