package blobstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"holdfast/internal/durable/faultfs"
)

// memory is a copy elsewhere.
type memory struct {
	mu      sync.Mutex
	content map[Ref]string
	fetched int64 // bytes
	calls   int
	broken  func(call int) bool // whether a call fails; may be nil
}

func newMemory() *memory { return &memory{content: map[Ref]string{}} }

var errBroken = errors.New("the remote is broken")

func (m *memory) fetch(_ context.Context, a Away, from, n int64) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.content[a.Ref]
	m.calls++
	if !ok || string(a.Location) != "at "+string(a.Ref) {
		return nil, errors.New("it is not there")
	}
	m.fetched += n
	body := io.Reader(strings.NewReader(content[from : from+n]))
	if m.broken != nil && m.broken(m.calls) {
		switch m.calls % 3 {
		case 0:
			return nil, errBroken
		case 1:
			body = io.MultiReader(io.LimitReader(body, n/2), iotest.ErrReader(errBroken))
		case 2:
			body = io.LimitReader(body, n/2)
		}
	}
	return io.NopCloser(body), nil
}

// evict copies files to the remote and evicts them.
func (m *memory) evict(s *Store, refs ...Ref) error {
	var away []Away
	for _, ref := range refs {
		r, err := s.openFile(ref)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
		m.mu.Lock()
		m.content[ref] = string(b)
		m.mu.Unlock()
		away = append(away, Away{ref, int64(len(b)), []byte("at " + ref)})
	}
	return s.Evict(away)
}

// files returns n files of a store.
func files(t testing.TB, s *Store, n int) (refs []Ref, want map[Ref]string) {
	t.Helper()
	want = map[Ref]string{}
	for i := range n {
		content := strings.Repeat(fmt.Sprint("file ", i, " "), 1+i*20)
		ref, err := put(t, s, content)
		if err != nil {
			t.Fatal(err)
		}
		refs, want[ref] = append(refs, ref), content
	}
	return refs, want
}

// TestEvict: what was evicted can be read and is kept again, also after restarts, and what is removed stays removed.
func TestEvict(t *testing.T) {
	m, dir := newMemory(), filepath.Join(t.TempDir(), "store")
	opts := Options{Fetch: m.fetch, DirectorySize: 3, Room: func(int64) error { return errors.New("none") }}
	s := openStore(t, dir, opts)
	refs, want := files(t, s, 40)
	s.Close()
	s = openStore(t, dir, opts) // the first walk counts what is here
	if err := s.Walk(func(Ref, int64, time.Time) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if s.Local() < sizeOf(want) {
		t.Errorf("%d bytes are here, not %d", s.Local(), sizeOf(want))
	}
	for i := 0; i < len(refs); i += 1 + i%4 { // batches of different sizes
		if err := m.evict(s, refs[i:min(len(refs), i+1+i%4)]...); err != nil {
			t.Fatal(err)
		}
	}
	if n, size := s.Absent(); n != 40 || size != sizeOf(want) {
		t.Errorf("%d files of %d bytes are away", n, size)
	}
	if s.Local() != 0 || len(s.away.now()) > 6 {
		t.Errorf("%d bytes and %d lists are left", s.Local(), len(s.away.now()))
	}
	if err := m.evict(s, refs...); err != nil { // again
		t.Fatal(err)
	}
	if err := s.Remove(refs[:5]...); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for i, ref := range refs {
			if s.Has(ref) != (i >= 5) || s.IsAway(ref) != (i >= 5) {
				t.Errorf("file %d: has %v, is away %v", i, s.Has(ref), s.IsAway(ref))
			}
			if i >= 5 {
				mustRead(t, s, ref, want[ref], "eviction")
			} else if _, err := s.Open(t.Context(), ref); !errors.Is(err, ErrNotFound) {
				t.Errorf("a removed file: %v", err)
			}
		}
		listed := map[Ref]bool{}
		if err := s.EachListed(func(a Away, here bool) error {
			if listed[a.Ref] || here || a.Size != int64(len(want[a.Ref])) {
				t.Errorf("%s is listed wrong: %v, %d bytes", a.Ref, here, a.Size)
			}
			listed[a.Ref] = true
			return nil
		}); err != nil || len(listed) != len(refs)-5 {
			t.Errorf("%d are listed, %v", len(listed), err)
		}
		s.Close()
		s = openStore(t, dir, opts)
	}
	if n, _ := s.Absent(); n != 0 {
		t.Errorf("%d files are counted before anybody counts", n)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := s.Link(copied); err != nil {
		t.Fatal(err)
	}
	s.Close()
	opts.Room = nil
	s = openStore(t, dir, opts)
	for _, ref := range refs[5:] {
		mustRead(t, s, ref, want[ref], "a restart")
		if s.IsAway(ref) || s.Remove(ref) != nil || s.Has(ref) {
			t.Errorf("%s was not kept, or not removed", ref)
		}
	}
	if s.Local() != 0 {
		t.Errorf("%d bytes are left", s.Local())
	}
	if n, size := s.Absent(); n != -35 || size >= 0 {
		t.Errorf("%d files of %d bytes came back", -n, -size)
	}
	other := openStore(t, copied, opts) // removals in the store are not those of its copy
	mustRead(t, other, refs[20], want[refs[20]], "a link")
}

func sizeOf(all map[Ref]string) (n int64) {
	for _, content := range all {
		n += int64(len(content))
	}
	return n
}

// TestEvictedCopies: a file that was fetched can be evicted again, and one that is listed wrongly is forgotten.
func TestEvictedCopies(t *testing.T) {
	m := newMemory()
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{Fetch: m.fetch})
	refs, want := files(t, s, 3)
	if s.ReadCopy(refs[0]) {
		t.Error("a file without a copy elsewhere is read there")
	}
	if err := m.evict(s, refs...); err != nil {
		t.Fatal(err)
	}
	mustRead(t, s, refs[0], want[refs[0]], "eviction")
	if err := m.evict(s, refs[0]); err != nil || !s.IsAway(refs[0]) {
		t.Errorf("a copy was not evicted again: %v", err)
	}
	mustRead(t, s, refs[1], want[refs[1]], "eviction")
	if err := s.Unlist(refs[1]); err != nil || s.ReadCopy(refs[1]) || !s.Has(refs[1]) {
		t.Errorf("it is listed still, or gone: %v", err)
	}
	if err := s.Evict([]Away{{Ref: "../x"}}); !errors.Is(err, ErrBadRef) {
		t.Error(err)
	}
}

// TestEvictEveryOperationFails fails each file operation of evictions, fetches and removals: whatever was acknowledged can
// be read afterwards, and what was removed is gone.
func TestEvictEveryOperationFails(t *testing.T) {
	for k := 0; ; k++ {
		fs, m := faultfs.FailNth(k, syscall.EIO), newMemory()
		dir := filepath.Join(t.TempDir(), "store")
		want := map[Ref]string{}
		var removed Ref
		if s, err := Open(dir, Options{DirectorySize: 2, Fetch: m.fetch, fs: fs}); err == nil {
			for i := range 6 {
				content := strings.Repeat("x", 50*i) + fmt.Sprint(i)
				ref, err := put(t, s, content)
				if err != nil {
					continue
				}
				want[ref] = content
				_ = m.evict(s, ref)
				if i%2 == 0 {
					mustRead(t, s, ref, content, fs.Fired())
				}
				if i == 3 {
					_ = s.Remove(ref)
					removed = ref
				}
			}
			s.Close()
		}
		s := openStore(t, dir, Options{DirectorySize: 2, Fetch: m.fetch})
		if removed != "" { // what failed is repeated
			if err := s.Remove(removed); err != nil || s.Has(removed) {
				t.Errorf("after %q: %s is there after its removal, %v", fs.Fired(), removed, err)
			}
			delete(want, removed)
		}
		mustHold(t, s, want, fs.Fired())
		s.Close()
		if fs.Fired() == "" {
			t.Logf("%d operations", k)
			return
		}
	}
}

// TestEvictPowerCut cuts the power after each eviction and each fetch: everything is here or away.
func TestEvictPowerCut(t *testing.T) {
	if lost := evictPowerCuts(t, func(string, string) bool { return false }); len(lost) > 0 {
		t.Errorf("lost: %v", lost)
	}
	for name, ignore := range map[string]func(kind, path string) bool{
		"list":         func(kind, path string) bool { return kind == "file" && strings.Contains(path, "/away/") },
		"name of list": func(kind, path string) bool { return kind == "directory" && strings.HasSuffix(path, "/away") },
	} {
		if lost := evictPowerCuts(t, ignore); len(lost) == 0 {
			t.Errorf("without the sync of the %s nothing is lost", name)
		}
	}
}

func evictPowerCuts(t *testing.T, ignore func(kind, path string) bool) (lost []string) {
	t.Helper()
	fs, m, parent := newPowerFS(ignore), newMemory(), filepath.Join(t.TempDir(), "parent")
	if err := fs.OS.Mkdir(parent); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, filepath.Join(parent, "store"), Options{DirectorySize: 3, Fetch: m.fetch, fs: fs})
	refs, want := files(t, s, 12)
	check := func() {
		left := t.TempDir()
		fs.cut(t, parent, left)
		s, err := Open(filepath.Join(left, "store"), Options{Fetch: m.fetch})
		if err != nil {
			lost = append(lost, err.Error())
			return
		}
		defer s.Close()
		for ref, content := range want {
			if got, err := readString(t, s, ref); err != nil || got != content {
				lost = append(lost, fmt.Sprintf("%s: %d bytes, %v", ref, len(got), err))
			}
		}
	}
	for i, ref := range refs {
		if err := m.evict(s, ref); err != nil {
			t.Fatal(err)
		}
		if err := s.syncDir(filepath.Join(s.blobs, directoryName(uint32(1+i/3)))); err != nil { // the removal reaches the disk
			t.Fatal(err)
		}
		check()
		if i%3 == 0 {
			mustRead(t, s, ref, want[ref], "eviction")
			check()
		}
	}
	return lost
}

func readString(t testing.TB, s *Store, ref Ref) (string, error) {
	t.Helper()
	r, err := s.Open(t.Context(), ref)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

// TestUse: a read by a user is noted, no other.
func TestUse(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{})
	refs, want := files(t, s, 2)
	used := func() map[Ref]time.Time {
		all := map[Ref]time.Time{}
		if err := s.WalkLocal(func(f LocalFile) error {
			all[f.Ref] = f.Used
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	past := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, ref := range refs {
		setTimes(t, s, ref, past)
		mustRead(t, s, ref, want[ref], "nothing")
	}
	s.Use(refs[1])
	got := used()
	if !got[refs[0]].Equal(past) || time.Since(got[refs[1]]) > time.Minute {
		t.Errorf("used at %v and %v", got[refs[0]], got[refs[1]])
	}
}

func setTimes(t testing.TB, s *Store, ref Ref, at time.Time) {
	t.Helper()
	path, err := ref.path(s.blobs)
	if err == nil {
		err = os.Chtimes(path, at, at)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRemoteRanges: of a large file that is away only what is read is fetched, and a reader of all of it keeps it.
func TestRemoteRanges(t *testing.T) {
	m, dir := newMemory(), filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir, Options{Fetch: m.fetch, FetchWhole: 1})
	content := strings.Repeat("0123456789abcdef", 20<<20/16)
	ref, err := put(t, s, content)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.evict(s, ref); err != nil {
		t.Fatal(err)
	}
	open := func() *Reader {
		t.Helper()
		r, err := s.Open(t.Context(), ref)
		if err != nil || r.Size() != int64(len(content)) {
			t.Fatal(err)
		}
		return r
	}
	r := open()
	if m.calls != 0 || r.Verify(0, r.Size()) != nil || m.calls != 0 {
		t.Error("opening fetched")
	}
	b := make([]byte, 100)
	if n, err := r.ReadAt(b, 15<<20+7); n != 100 || err != nil || string(b) != content[15<<20+7:15<<20+107] {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := r.ReadAt(b, int64(len(content))-10); n != 10 || err != io.EOF || string(b[:n]) != content[len(content)-10:] {
		t.Errorf("at the end %d bytes, %v", n, err)
	}
	if m.fetched > firstWindow+10 || s.Local() != 0 && !s.IsAway(ref) {
		t.Errorf("%d bytes were fetched for a range", m.fetched)
	}
	if _, err := r.Seek(-4, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	if tail, err := io.ReadAll(r); string(tail) != "cdef" || err != nil {
		t.Errorf("%q, %v", tail, err)
	}
	r.Close()
	m.fetched = 0
	first, second := open(), open()
	for _, r := range []*Reader{first, second} { // only one of them keeps it
		if got, err := io.ReadAll(r); err != nil || string(got) != content {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	s.fetches.tasks.Wait()
	if m.fetched != 2*int64(len(content)) || s.IsAway(ref) {
		t.Errorf("%d bytes were fetched, away: %v", m.fetched, s.IsAway(ref))
	}
	mustRead(t, s, ref, content, "keeping")
	if err := m.evict(s, ref); err != nil {
		t.Fatal(err)
	}
	gone := open()
	if _, err := io.ReadFull(gone, b); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ref); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, gone); err != nil {
		t.Error(err)
	}
	gone.Close()
	s.fetches.tasks.Wait()
	if s.Has(ref) || len(filesUnder(t, filepath.Join(dir, "incoming"))) > 0 || s.Local() != 0 {
		t.Errorf("what was removed while it was read is here: %d bytes", s.Local())
	}
}

// TestBrokenRemote: reading fails with ErrAway or gives the right bytes, never others, and a later read succeeds.
func TestBrokenRemote(t *testing.T) {
	for name, whole := range map[string]int64{"fetched whole": 1 << 30, "streamed": 1} {
		t.Run(name, func(t *testing.T) {
			m, dir := newMemory(), filepath.Join(t.TempDir(), "store")
			s := openStore(t, dir, Options{Fetch: m.fetch, FetchWhole: whole})
			refs, want := files(t, s, 30)
			if err := m.evict(s, refs...); err != nil {
				t.Fatal(err)
			}
			m.broken = func(call int) bool { return call%4 != 0 }
			for _, ref := range refs {
				for try := 0; ; try++ {
					got, err := readString(t, s, ref)
					if err == nil && got == want[ref] {
						break
					}
					if err == nil || !errors.Is(err, ErrAway) || !strings.HasPrefix(want[ref], got) || try > 20 {
						t.Fatalf("%d bytes, %v", len(got), err)
					}
				}
			}
			s.fetches.tasks.Wait()
			if left := filesUnder(t, filepath.Join(dir, "incoming")); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

// TestListsMerge compares lists with a model.
func TestListsMerge(t *testing.T) {
	dir := t.TempDir()
	l := &awayLists{fs: faultfs.FailNth(1<<30, nil), dir: dir}
	want := map[Ref][]byte{}
	for i := range 200 {
		var add []Away
		for n := range 1 + i%7 {
			ref, _ := awayRef(i*10 + n)
			location := bytes.Repeat([]byte{byte(i)}, i%60)
			add, want[ref] = append(add, Away{ref, int64(i), location}), location
		}
		if err := l.add(add); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			if _, err := l.remove(add[0].Ref); err != nil {
				t.Fatal(err)
			}
			delete(want, add[0].Ref)
		}
		if i%50 == 0 {
			var err error
			if l, err = openAwayLists(l.fs, dir, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(l.now()); n > 10 {
		t.Errorf("there are %d lists", n)
	}
	for ref, location := range want {
		if a, err := l.find(ref); err != nil || !bytes.Equal(a.Location, location) {
			t.Errorf("%s is at %x, %v", ref, a.Location, err)
		}
	}
	n := 0
	for _, err := range l.all() {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != len(want) {
		t.Errorf("%d are listed, want %d", n, len(want))
	}
}

// TestUnlistEvicted: a file that has left the disk since it was looked at stays listed, so that it can be read.
func TestUnlistEvicted(t *testing.T) {
	t.Parallel()
	remote := newMemory()
	s := openStore(t, t.TempDir(), Options{Fetch: remote.fetch})
	ref, err := put(t, s, "content")
	if err == nil {
		err = remote.evict(s, ref)
	}
	if err == nil {
		err = s.Unlist(ref)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !s.IsAway(ref) {
		t.Error("it is neither here nor away")
	}
	mustRead(t, s, ref, "content", "it was not forgotten")
	if err := s.Unlist(ref); err != nil || s.ReadCopy(ref) {
		t.Errorf("what is here is listed still: %v", err)
	}
}

// TestAbsentByTwoCounts: two counts at once do not count everything twice.
func TestAbsentByTwoCounts(t *testing.T) {
	s := openStore(t, restored(t, 50), Options{})
	nothing := func(Away, bool) error { return nil }
	begun := false
	if err := s.EachListed(func(Away, bool) error {
		if begun {
			return nil
		}
		begun = true
		return s.EachListed(nothing)
	}); err != nil {
		t.Fatal(err)
	}
	both, bothBytes := s.Absent()
	if err := s.EachListed(nothing); err != nil {
		t.Fatal(err)
	}
	if one, oneBytes := s.Absent(); both != 50 || both != one || bothBytes != oneBytes {
		t.Errorf("two counts found %d files of %d bytes, and one %d of %d", both, bothBytes, one, oneBytes)
	}
}

// TestFetchReadOnly: what is away can be read, whatever its size, while the store is read-only after a failed sync.
func TestFetchReadOnly(t *testing.T) {
	for _, whole := range []int64{0, 1} {
		m := newMemory()
		s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{Fetch: m.fetch, FetchWhole: whole})
		refs, want := files(t, s, 3)
		if err := m.evict(s, refs...); err != nil {
			t.Fatal(err)
		}
		cause := error(syscall.EIO)
		s.broken.Store(&cause)
		for _, ref := range refs {
			mustRead(t, s, ref, want[ref], "a failed sync")
		}
		if err := s.Fetch(t.Context(), refs[0]); !errors.Is(err, ErrAway) || !errors.Is(err, ErrReadOnly) {
			t.Errorf("a fetch to this disk: %v", err)
		}
	}
}

// TestReadCopy: a file that is damaged here is read elsewhere, and stays here until it was fetched whole. What cannot be fetched
// can still be read here, as far as it is whole.
func TestReadCopy(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 64<<10) // 4 blocks
	for _, whole := range []int64{0, 1} {
		for _, room := range []error{nil, errors.New("none")} {
			m, dir := newMemory(), filepath.Join(t.TempDir(), "store")
			var full, gone error
			fetch := func(ctx context.Context, a Away, from, n int64) (io.ReadCloser, error) {
				if gone != nil {
					return nil, gone
				}
				return m.fetch(ctx, a, from, n)
			}
			s := openStore(t, dir, Options{Fetch: fetch, FetchWhole: whole, Room: func(int64) error { return full }})
			ref, err := put(t, s, content)
			if err == nil {
				err = m.evict(s, ref)
			}
			if err == nil {
				err = s.Fetch(t.Context(), ref)
			}
			if err != nil {
				t.Fatal(err)
			}
			local := s.Local()
			path, err := ref.path(s.blobs)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text[blockSize+7] ^= 1
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			full = room
			read := func() (string, error) {
				r, err := s.Open(t.Context(), ref)
				if err != nil {
					return "", err
				}
				b, err := io.ReadAll(r)
				return string(b), errors.Join(err, r.Close())
			}
			if _, err := read(); !errors.Is(err, ErrDamaged) {
				t.Errorf("the damage: %v", err)
			}
			if !s.ReadCopy(ref) {
				t.Error("it is not listed")
			}
			gone = errBroken
			if got, err := read(); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrAway) || len(got) != blockSize {
				t.Errorf("damaged here, and not to be fetched: %d bytes, %v", len(got), err)
			} else if _, ok := errors.AsType[*CopyError](err); !ok {
				t.Errorf("it does not say that it was not fetched: %v", err)
			}
			gone = nil
			if got, err := read(); !errors.Is(err, ErrDamaged) || len(got) != blockSize {
				t.Errorf("it is not read here again: %d bytes, %v", len(got), err)
			}
			s.ReadCopy(ref)
			for range 2 {
				if got, err := read(); err != nil || got != content {
					t.Errorf("damaged here only: %d bytes, %v", len(got), err)
				}
			}
			full = nil
			if err := s.Fetch(t.Context(), ref); err != nil {
				t.Error(err)
			}
			if r, err := s.openFile(ref); err != nil || r.Verify(0, r.Size()) != nil || r.Close() != nil {
				t.Errorf("it is damaged here still: %v", err)
			}
			gone = errBroken
			if got, err := read(); err != nil || got != content {
				t.Errorf("fetched again: %d bytes, %v", len(got), err)
			}
			s.Close() // which waits for what is being kept
			if n, size := s.Absent(); n != 0 || size != 0 || s.Local() != local {
				t.Errorf("%d files of %d bytes are away, and %d bytes here, not %d", n, size, s.Local(), local)
			}
		}
	}
}
