package blobstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"holdfast/internal/durable/faultfs"
)

// TestListedAfterFailedList: what is evicted after a list could not be published is still listed at the next start.
func TestListedAfterFailedList(t *testing.T) {
	t.Parallel()
	remote, dir, fs := newMemory(), t.TempDir(), &faultfs.FS{Err: syscall.EMFILE}
	s := openStore(t, dir, Options{fs: fs, Fetch: remote.fetch})
	var refs []Ref
	for n := range 9 {
		ref, err := put(t, s, fmt.Sprint("content ", n))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	if err := remote.evict(s, refs[:5]...); err != nil {
		t.Fatal(err)
	}
	fs.Arm(func(_ int, verb, path string) bool { return verb == "opendir" && filepath.Base(path) == awayDirectory })
	if err := remote.evict(s, refs[5:8]...); !errors.Is(err, syscall.EMFILE) {
		t.Fatalf("evict without descriptors: %v", err)
	}
	fs.Arm(nil)
	if err := remote.evict(s, refs[8]); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = openStore(t, dir, Options{Fetch: remote.fetch})
	for n, ref := range refs {
		mustRead(t, s, ref, fmt.Sprint("content ", n), "after a start")
	}
}

// damageList has change damage the only list in a closed store.
func damageList(t *testing.T, dir string, change func(text []byte)) {
	t.Helper()
	lists, err := filepath.Glob(filepath.Join(dir, awayDirectory, "0*"))
	if err != nil || len(lists) != 1 {
		t.Fatal(lists, err)
	}
	text, err := os.ReadFile(lists[0])
	if err != nil {
		t.Fatal(err)
	}
	change(text)
	if err := os.WriteFile(lists[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedRecords: damaged records of a list cost no other one, and what they named can be listed again.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	for _, damaged := range [][]int{{15}, {0}, {30}, {0, 1, 2}, {14, 15, 16, 17}, {3, 7, 15, 23}, {28, 29, 30}} {
		m, dir := newMemory(), filepath.Join(t.TempDir(), "store")
		s := openStore(t, dir, Options{Fetch: m.fetch})
		refs, want := files(t, s, 31)
		if err := m.evict(s, refs...); err != nil {
			t.Fatal(err)
		}
		s.Close()
		slices.Sort(refs)
		damageList(t, dir, func(text []byte) {
			for _, n := range damaged {
				text[awayHead+n*(len(text)-awayHead)/31+22] ^= 1 // the size of the content
			}
		})
		s = openStore(t, dir, Options{Fetch: m.fetch, Room: func(int64) error { return errBroken }})
		var lost []Away
		for n, ref := range refs {
			if !slices.Contains(damaged, n) {
				mustRead(t, s, ref, want[ref], fmt.Sprint("damage ", damaged))
				continue
			}
			lost = append(lost, Away{ref, int64(len(want[ref])), []byte("at " + ref)})
			if _, err := s.Open(t.Context(), ref); !errors.Is(err, ErrNotFound) {
				t.Errorf("damage %v: record %d: %v", damaged, n, err)
			}
			if !s.Has(ref) {
				t.Errorf("damage %v: record %d is taken for one that was never listed", damaged, n)
			}
		}
		for n := 1; n < len(refs); n++ { // before each that is whole, as is the one before it
			text := []byte(refs[n])
			text[len(text)-1] ^= 1
			unknown := Ref(text)
			if slices.Contains(damaged, n) || slices.Contains(damaged, n-1) || n+1 < len(refs) && slices.Contains(damaged, n+1) {
				continue
			}
			if s.Has(unknown) {
				t.Errorf("damage %v: what is beside record %d and was never listed is there", damaged, n)
			}
		}
		listed := 0
		if err := s.EachListed(func(Away, bool) error { listed++; return nil }); err != nil || listed != 31-len(lost) {
			t.Errorf("damage %v: %d are listed, %v", damaged, listed, err)
		}
		more, _ := files(t, s, 2)
		if err := errors.Join(m.evict(s, more[0]), s.Remove(more[1], lost[0].Ref)); err != nil {
			t.Errorf("damage %v: %v", damaged, err)
		}
		again := append(lost, Away{Ref: refs[10], Size: 1})
		if fresh, err := s.List(again); err != nil || len(fresh) != len(lost) {
			t.Errorf("damage %v: listed again %v, %v", damaged, fresh, err)
		}
		for _, ref := range refs {
			mustRead(t, s, ref, want[ref], fmt.Sprint("what was listed again, damage ", damaged))
		}
	}
}

// TestMergeBesideDamage: what a damaged record may name, or a list that was set aside, is not taken for what was never listed after
// more was listed, nor in a copy of the store.
func TestMergeBesideDamage(t *testing.T) {
	t.Parallel()
	const count = 31
	for name, damage := range map[string]func(text []byte){
		"a record":  func(text []byte) { text[awayHead+15*(len(text)-awayHead)/count+22] ^= 1 },
		"all of it": func(text []byte) { clear(text) },
	} {
		m, dir := newMemory(), filepath.Join(t.TempDir(), "store")
		opts := Options{Fetch: m.fetch, Room: func(int64) error { return errBroken }, DamagedList: func(string, error) {}}
		s := openStore(t, dir, opts)
		refs, want := files(t, s, count)
		if err := m.evict(s, refs...); err != nil {
			t.Fatal(err)
		}
		s.Close()
		slices.Sort(refs)
		damageList(t, dir, damage)
		s = openStore(t, dir, opts)
		more, wantMore := files(t, s, 2*count)
		for n := 0; n < len(more); n += 20 {
			if err := m.evict(s, more[n:min(n+20, len(more))]...); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(s.away.now()); n > 3 {
			t.Errorf("%s: there are %d lists", name, n)
		}
		copied := filepath.Join(t.TempDir(), "store")
		if err := s.Link(copied); err != nil {
			t.Fatal(err)
		}
		s.Close()
		for _, dir := range []string{dir, copied} {
			s := openStore(t, dir, opts)
			if !s.Has(refs[15]) {
				t.Errorf("%s: %s is taken for one that was never listed", name, refs[15])
			}
			for n, ref := range refs {
				if name == "a record" && n != 15 {
					mustRead(t, s, ref, want[ref], name)
				}
			}
			for _, ref := range more {
				mustRead(t, s, ref, wantMore[ref], name)
			}
			if none, err := s.NoneAway(t.Context(), noPace); none || err != nil {
				t.Errorf("%s: it was forgotten: %t, %v", name, none, err)
			}
			s.Close()
		}
	}
}

// TestDamagedHead: a list whose first line is damaged is used all the same. One of which nothing can be used is set aside.
func TestDamagedHead(t *testing.T) {
	t.Parallel()
	m, dir := newMemory(), filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir, Options{Fetch: m.fetch, Room: func(int64) error { return errBroken }})
	refs, want := files(t, s, 3)
	if err := m.evict(s, refs...); err != nil {
		t.Fatal(err)
	}
	for n := range awayHead {
		s.Close()
		damageList(t, dir, func(text []byte) { text[n] ^= 1 })
		s = openStore(t, dir, Options{Fetch: m.fetch, Room: func(int64) error { return errBroken }})
		for _, ref := range refs {
			mustRead(t, s, ref, want[ref], fmt.Sprint("byte ", n))
		}
		damageList(t, dir, func(text []byte) { text[n] ^= 1 })
	}
	s.Close()
	damageList(t, dir, func(text []byte) { clear(text) })
	aside := ""
	s = openStore(t, dir, Options{Fetch: m.fetch, DamagedList: func(path string, err error) {
		if aside = path; !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
	}})
	if _, err := os.Stat(aside); err != nil {
		t.Error(err)
	}
	for range 2 {
		for _, ref := range refs {
			if !s.Has(ref) || s.IsAway(ref) {
				t.Errorf("%s, which the list named, is certainly not there", ref)
			}
		}
		s.Close()
		s = openStore(t, dir, Options{Fetch: m.fetch})
	}
	var lost []Away
	for _, ref := range refs {
		lost = append(lost, Away{ref, int64(len(want[ref])), []byte("at " + ref)})
	}
	if _, err := s.List(lost); err != nil {
		t.Error(err)
	}
	s.Close()
	s = openStore(t, dir, Options{Fetch: m.fetch})
	for _, ref := range refs {
		mustRead(t, s, ref, want[ref], "what was listed again")
	}
}

// badList is a list of which the disk does not give back some bytes.
type badList struct {
	awayFile
	badSector
}

func (b badList) ReadAt(p []byte, off int64) (int, error) { return b.badSector.ReadAt(p, off) }

// TestUnreadableRecords: what the disk does not give back of a list costs only the records in it. All others are listed, what was
// never listed can be, and what cannot be read can be listed again.
func TestUnreadableRecords(t *testing.T) {
	t.Parallel()
	const count, first, last = 200, 90, 110 // the records that cannot be read
	m := newMemory()
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{Fetch: m.fetch, Room: func(int64) error { return errBroken }})
	refs, want := files(t, s, count+2)
	more := refs[count:]
	refs = refs[:count]
	if err := m.evict(s, refs...); err != nil {
		t.Fatal(err)
	}
	slices.Sort(refs)
	list := s.away.now()[0]
	from, to := int64(awayHead)+first*list.record+1, int64(awayHead)+last*list.record
	list.file = badList{list.file, badSector{list.file, from, to, syscall.EIO}}
	var lost []Away
	for _, ref := range refs[first:last] {
		lost = append(lost, Away{ref, int64(len(want[ref])), []byte("at " + ref)})
	}
	if err := m.evict(s, more[0]); err != nil {
		t.Errorf("what was never listed: %v", err)
	}
	listed := map[Ref]bool{}
	if err := s.EachListed(func(a Away, _ bool) error {
		listed[a.Ref] = true
		return nil
	}); err != nil || len(listed) != count+1-len(lost) {
		t.Errorf("%d are listed, %v", len(listed), err)
	}
	for _, a := range lost {
		if listed[a.Ref] || !s.Has(a.Ref) || s.IsAway(a.Ref) {
			t.Errorf("%s: listed %v, has %v", a.Ref, listed[a.Ref], s.Has(a.Ref))
		}
	}
	if none, err := s.NoneAway(t.Context(), noPace); none || err != nil {
		t.Errorf("it was forgotten: %v, %v", none, err)
	}
	if fresh, err := s.List(lost); err != nil || len(fresh) != len(lost) {
		t.Errorf("%d are listed again, %v", len(fresh), err)
	}
	for _, ref := range refs {
		mustRead(t, s, ref, want[ref], "unreadable records")
	}
}
