package blobstore

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"holdfast/internal/durable/faultfs"
)

// A sync of a directory that fails, even for lack of space, may have lost the names
// that others wrote: the store takes no more.
func TestFailedDirectorySyncIsNotForgotten(t *testing.T) {
	for name, suffix := range map[string]string{"of the new directory's name": "/blobs", "of the blob's name": "/00000002"} {
		t.Run(name, func(t *testing.T) {
			fs := &faultfs.FS{Err: syscall.ENOSPC}
			s := openStore(t, t.TempDir(), Options{DirectorySize: 1, fs: fs})
			if _, err := put(t, s, "one"); err != nil {
				t.Fatal(err)
			}
			fs.Arm(func(_ int, verb, path string) bool { return verb == "syncdir" && strings.HasSuffix(path, suffix) })
			if _, err := put(t, s, "two"); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("put: %v", err)
			}
			fs.Arm(nil) // the kernel says that all is well again
			if ref, err := put(t, s, "two"); err == nil {
				t.Errorf("%s is acknowledged after a sync of its directory has failed", ref)
			}
		})
	}
}
