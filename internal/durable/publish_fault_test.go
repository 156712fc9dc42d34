package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/internal/durable"
	"holdfast/internal/durable/faultfs"
)

// TestPublishIfChangedSyncs: a file that has the data already may be one whose name was not synced.
func TestPublishIfChangedSyncs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conf")
	failing := true
	fs := faultfs.FailVerb("syncdir", &failing, syscall.EIO)
	for range 2 {
		if _, err := durable.PublishIfChanged(fs, path, []byte("new"), 0o600); !errors.Is(err, durable.ErrSync) {
			t.Errorf("while the directory cannot be synced: %v", err)
		}
	}
	failing = false
	before := fs.Syncs()
	if wrote, err := durable.PublishIfChanged(fs, path, []byte("new"), 0o600); wrote || err != nil || fs.Syncs() == before {
		t.Errorf("afterwards: wrote is %t, %v, after %d syncs", wrote, err, fs.Syncs()-before)
	}
}

// TestPublishEveryFault fails each operation of a publication in turn. The file has the old content or, once it was
// renamed, the new one, and no temporary file is left.
func TestPublishEveryFault(t *testing.T) {
	for n := 0; ; n++ {
		path := filepath.Join(t.TempDir(), "conf")
		if err := durable.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		fs := faultfs.FailNth(n, syscall.EIO)
		err := durable.Publish(fs, path, 0o600, durable.Bytes([]byte("ne"), []byte("w")))
		if fs.Fired() == "" {
			if err != nil || n < 9 {
				t.Errorf("%d operations and error %v", n, err)
			}
			return
		}
		verb, _, _ := strings.Cut(fs.Fired(), " ")
		if !errors.Is(err, syscall.EIO) || errors.Is(err, durable.ErrSync) != strings.HasPrefix(verb, "sync") {
			t.Errorf("%s: error %v", verb, err)
		}
		want := "old"
		if strings.HasSuffix(verb, "dir") { // after the rename
			want = "new"
		}
		if got, err := os.ReadFile(path); string(got) != want || err != nil {
			t.Errorf("%s: the file holds %q, want %q, %v", verb, got, want, err)
		}
		if _, err := os.Lstat(path + durable.NewSuffix); err == nil {
			t.Errorf("%s: the temporary file stays", verb)
		}
	}
}
