package blobstore

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestEveryOperationFails fails the first file operation of a small life of a
// store, then the second, until nothing fails. What was acknowledged must be
// there after a restart, what was not must be gone, and nothing may be left.
func TestEveryOperationFails(t *testing.T) {
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		t.Run(fault.Error(), func(t *testing.T) {
			for k := 0; ; k++ {
				fs := failNth(k, fault)
				oneLife(t, fs)
				if fs.fired == "" {
					t.Logf("%d operations", k)
					return
				}
			}
		})
	}
}

func oneLife(t *testing.T, fs *faultFS) {
	dir := filepath.Join(t.TempDir(), "store")
	acknowledged := map[Ref]string{}
	s, err := Open(dir, Options{DirectorySize: 2, fs: fs})
	if err == nil {
		for _, content := range []string{"one", "two", "three", "four", "five"} {
			if ref, err := put(t, s, content); err == nil {
				acknowledged[ref] = content
			}
		}
		for ref := range acknowledged {
			if s.Remove(ref) == nil {
				delete(acknowledged, ref)
			}
			break
		}
		s.Close()
	}
	if fs.fired == "" && err != nil {
		t.Fatalf("no fault and yet: %v", err)
	}
	s = openStore(t, dir, Options{DirectorySize: 2})
	mustHold(t, s, acknowledged, fs.fired)
	s.Close()
}

// mustHold checks that the store holds want whole and, unless the failed
// operation was a removal, nothing else.
func mustHold(t *testing.T, s *Store, want map[Ref]string, fired string) {
	t.Helper()
	for ref, content := range want {
		r, err := s.Open(ref)
		if err != nil {
			t.Errorf("after %q: %v", fired, err)
			continue
		}
		if got, _ := io.ReadAll(r); string(got) != content {
			t.Errorf("after %q: %s holds %q, want %q", fired, ref, got, content)
		}
		r.Close()
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

func TestFailedSyncMakesReadOnly(t *testing.T) {
	for _, verb := range []string{"syncfile", "syncdir"} {
		t.Run(verb, func(t *testing.T) {
			on := false
			s := openStore(t, t.TempDir(), Options{fs: failVerb(verb, &on, syscall.EIO)})
			before, err := put(t, s, "before")
			if err != nil {
				t.Fatal(err)
			}
			open, err := s.Create(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			on = true
			if _, err := put(t, s, "hit"); !errors.Is(err, syscall.EIO) {
				t.Fatalf("commit: %v", err)
			}
			on = false // the kernel says all is well again
			_, err = s.Create(t.Context())
			if !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "sync to disk failed") {
				t.Errorf("Create: %v", err)
			}
			if _, _, err := open.Commit(); !errors.Is(err, ErrReadOnly) {
				t.Errorf("Commit of a writer that was open: %v", err)
			}
			mustHold(t, s, map[Ref]string{before: "before"}, verb)
			if err := s.Remove(before); err != nil {
				t.Errorf("Remove: %v", err)
			}
		})
	}
}

func TestDiskFull(t *testing.T) {
	for _, verb := range []string{"create", "write", "syncfile", "rename"} {
		t.Run(verb, func(t *testing.T) {
			on, dir := false, t.TempDir()
			s := openStore(t, dir, Options{fs: failVerb(verb, &on, syscall.ENOSPC)})
			other, err := s.Create(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			on = true
			if _, err := put(t, s, "too much"); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("put on a full disk: %v", err)
			}
			on = false
			if names := filesUnder(t, dir); len(names) != 2 { // format, other
				t.Errorf("the failed blob left something: %v", names)
			}
			if _, _, err := other.Commit(); err != nil {
				t.Errorf("another blob: %v", err)
			}
			if _, err := put(t, s, "later"); err != nil {
				t.Errorf("once there is space: %v", err)
			}
		})
	}
}

// TestFailedSharedSync fails one directory sync that several commits share.
func TestFailedSharedSync(t *testing.T) {
	on := false
	s := openStore(t, t.TempDir(), Options{fs: failVerb("syncdir", &on, syscall.EIO)})
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
