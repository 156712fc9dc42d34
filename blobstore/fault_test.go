package blobstore

import (
	"errors"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/durable/faultfs"
)

// TestEveryOperationFails fails the first file operation of a short life of a store, then the second, until nothing
// fails, alone and together with every later truncation. After a restart, everything acknowledged must be there,
// everything else must be gone, and nothing may be left over.
func TestEveryOperationFails(t *testing.T) {
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS} {
		for _, also := range []string{"", "truncate"} {
			t.Run(fault.Error()+" "+also, func(t *testing.T) {
				for k := 0; ; k++ {
					fs := &faultfs.FS{Err: fault, Hit: func(n int, verb, _ string) bool { return n == k || n > k && verb == also }}
					oneLife(t, fs)
					if fs.Operations() <= k {
						t.Logf("%d operations", k)
						return
					}
				}
			})
		}
	}
}

func oneLife(t *testing.T, fs *faultfs.FS) {
	dir := filepath.Join(t.TempDir(), "store")
	acknowledged, published := map[Ref]string{}, map[Ref]string{}
	s, err := Open(dir, Options{DirectorySize: 2, SegmentSize: 150, fs: fs})
	readOnly := false
	if err == nil {
		for _, content := range []string{"one", "two", "three", "four", "five"} {
			if ref, err := put(t, s, content); err == nil {
				acknowledged[ref] = content
			}
			if ref, err := publish(t, s, content); err == nil {
				published[ref] = content
			}
		}
		for ref := range acknowledged {
			if s.Remove(ref) == nil {
				delete(acknowledged, ref)
			}
			break
		}
		readOnly = s.writable() != nil
		s.Close()
	}
	if fs.Fired() == "" && err != nil {
		t.Fatalf("no fault and yet: %v", err)
	}
	replayed := map[Ref]string{}
	s = openStore(t, dir, Options{DirectorySize: 2, Deliver: func(entries []Entry) {
		for _, e := range entries {
			replayed[e.Ref] = string(e.Note)
		}
	}})
	mustHold(t, s, acknowledged, fs.Fired())
	for ref, content := range replayed {
		mustRead(t, s, ref, content, fs.Fired())
	}
	if readOnly { // what was refused last may have happened
		maps.DeleteFunc(replayed, func(ref Ref, _ string) bool { return published[ref] == "" })
	}
	if diff := cmp.Diff(published, replayed); diff != "" {
		t.Errorf("after %q: replayed (-acknowledged +got):\n%s", fs.Fired(), diff)
	}
	s.Close()
}

// mustHold checks that the store has want complete and, unless the failed operation was a removal, nothing else.
func mustHold(t *testing.T, s *Store, want map[Ref]string, fired string) {
	t.Helper()
	for ref, content := range want {
		mustRead(t, s, ref, content, fired)
	}
	err := s.Walk(func(ref Ref, _ int64, _ time.Time) error {
		if _, ok := want[ref]; !ok {
			t.Errorf("after %q: %s was never acknowledged, and is there", fired, ref)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func mustRead(t *testing.T, s *Store, ref Ref, want, fired string) {
	t.Helper()
	r, err := s.Open(t.Context(), ref)
	if err != nil {
		t.Errorf("after %q: %v", fired, err)
		return
	}
	defer r.Close()
	if got, _ := io.ReadAll(r); string(got) != want {
		t.Errorf("after %q: %s holds %q, want %q", fired, ref, got, want)
	}
}

// TestSegmentInTheWay: the file of a segment that could neither be begun nor removed keeps the next one from nothing.
func TestSegmentInTheWay(t *testing.T) {
	fs, dir := &faultfs.FS{Err: syscall.ENOSPC}, filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir, Options{fs: fs})
	fs.Arm(func(_ int, verb, path string) bool {
		return filepath.Base(filepath.Dir(path)) == "journal" && (verb == "write" || verb == "remove")
	})
	if _, err := publish(t, s, "refused"); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	fs.Arm(nil)
	ref, err := publish(t, s, "content")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	var notes []string
	mustRead(t, openStore(t, dir, Options{Deliver: collect(&notes)}), ref, "content", "a segment in the way")
	if len(notes) != 1 {
		t.Errorf("replayed %q", notes)
	}
}

func TestFailedSyncMakesReadOnly(t *testing.T) {
	for name, test := range map[string]struct {
		verb string
		put  func(testing.TB, *Store, string) (Ref, error)
	}{"file": {"syncfile", put}, "directory": {"syncdir", put}, "journal": {"syncfile", publish}} {
		t.Run(name, func(t *testing.T) {
			on, verb := false, test.verb
			s := openStore(t, t.TempDir(), Options{fs: faultfs.FailVerb(verb, &on, syscall.EIO)})
			before, err := put(t, s, "before")
			if err != nil {
				t.Fatal(err)
			}
			open, err := s.Create(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			on = true
			if _, err := test.put(t, s, "hit"); !errors.Is(err, syscall.EIO) {
				t.Fatalf("commit: %v", err)
			}
			on = false // the kernel reports success again
			_, err = s.Create(t.Context())
			if !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "sync to disk failed") {
				t.Errorf("Create: %v", err)
			}
			if _, _, err := open.Commit(); !errors.Is(err, ErrReadOnly) {
				t.Errorf("Commit of a writer that was open: %v", err)
			}
			if err := s.Log(t.Context(), nil, nil); !errors.Is(err, ErrReadOnly) {
				t.Errorf("Log: %v", err)
			}
			mustHold(t, s, map[Ref]string{before: "before"}, verb)
			if err := s.Remove(before); err != nil {
				t.Errorf("Remove: %v", err)
			}
		})
	}
}

func TestDiskFull(t *testing.T) {
	for name, test := range map[string]struct {
		verb string
		put  func(testing.TB, *Store, string) (Ref, error)
	}{
		"create": {"create", put}, "write": {"write", put}, "sync": {"syncfile", put}, "rename": {"rename", put},
		"segment": {"create", publish}, "journal": {"write", publish}, "sync of journal": {"syncfile", publish},
	} {
		t.Run(name, func(t *testing.T) {
			verb := test.verb
			on, dir := false, t.TempDir()
			s := openStore(t, dir, Options{fs: faultfs.FailVerb(verb, &on, syscall.ENOSPC)})
			other, err := s.Create(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			on = true
			if _, err := test.put(t, s, "too much"); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("put on a full disk: %v", err)
			}
			on = false
			if names := filesUnder(t, dir); len(names) != 1 { // the format file
				t.Errorf("the failed blob left something: %v", names)
			}
			if _, _, err := other.Commit(); err != nil {
				t.Errorf("another blob: %v", err)
			}
			if _, err := test.put(t, s, "later"); err != nil {
				t.Errorf("once there is space: %v", err)
			}
		})
	}
}

// TestFailedSharedSync fails one directory sync that several commits share.
func TestFailedSharedSync(t *testing.T) {
	on := false
	s := openStore(t, t.TempDir(), Options{fs: faultfs.FailVerb("syncdir", &on, syscall.EIO)})
	on = true
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if ref, err := put(t, s, "x"); err == nil {
				t.Errorf("%s acknowledged by a failed sync", ref)
			}
		})
	}
	wg.Wait()
	mustHold(t, s, nil, "shared sync")
}
