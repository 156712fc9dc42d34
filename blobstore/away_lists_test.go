package blobstore

import (
	"errors"
	"fmt"
	"path/filepath"
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
