package objectstore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/durable/faultfs"
)

func openDir(t *testing.T, o Options) (string, Store) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(t.Context(), "file://"+dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return dir, s
}

func TestDirectoryModes(t *testing.T) {
	dir, s := openDir(t, Options{})
	if err := s.Create(t.Context(), "e/1/a", Bytes("x"), CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{"e": 0o700, "e/1": 0o700, "e/1/a": 0o600, incoming: 0o700} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %o", path, info.Mode(), err, want)
		}
	}
}

// TestDirectoryExchanged: a disk that is unmounted leaves an empty directory, which
// must not be filled.
func TestDirectoryExchanged(t *testing.T) {
	dir, s := openDir(t, Options{})
	if err := s.Create(t.Context(), "a", Bytes("x"), CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		_, statErr := s.Stat(t.Context(), "a")
		var listErr error
		for _, err := range s.List(t.Context(), "", "") {
			listErr = err
		}
		for act, err := range map[string]error{"create": s.Create(t.Context(), "b", Bytes("x"), CreateOptions{}), "stat": statErr, "list": listErr, "delete": s.Delete(t.Context(), "a")} {
			if !errors.Is(err, ErrNoStore) {
				t.Errorf("%s: %s: %v, want %v", what, act, err, ErrNoStore)
			}
		}
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	check("directory gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	check("another directory")
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("the other directory holds %v", entries)
	}
	if err := errors.Join(os.Remove(dir), os.Rename(dir+".away", dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(t.Context(), "a"); err != nil {
		t.Errorf("mounted again: %v", err)
	}
}

// TestDirectoryFaults: whatever fails, Create says so by its name, nothing is there
// under the key, and the next attempt succeeds.
func TestDirectoryFaults(t *testing.T) {
	for err, want := range map[error]error{
		syscall.ENOSPC: ErrFull, syscall.EDQUOT: ErrFull, syscall.EIO: ErrUnavailable, syscall.ESTALE: ErrUnavailable, syscall.EROFS: ErrDenied, syscall.EACCES: ErrDenied,
	} {
		total := 0
		for n := 0; n <= total; n++ {
			fsys := &faultfs.FS{Err: err}
			dir, s := openDir(t, Options{FS: fsys})
			fsys.Arm(func(i int, _, _ string) bool { return i == n })
			got := s.Create(t.Context(), "e/1/a", Bytes("content"), CreateOptions{})
			if total == 0 {
				fsys.Arm(nil)
				_ = s.Create(t.Context(), "e/2/b", Bytes("content"), CreateOptions{})
				total = fsys.Operations()
			}
			fired := fsys.Fired()
			if fired == "" {
				continue
			}
			if !errors.Is(got, want) {
				t.Errorf("%v at %s: %v, want %v", err, fired, got, want)
			}
			fsys.Arm(nil)
			again := s.Create(t.Context(), "e/1/a", Bytes("content"), CreateOptions{})
			// The name was there already if only its durability was not certain.
			if again != nil && !errors.Is(again, ErrExists) {
				t.Errorf("%v at %s, then again: %v", err, fired, again)
			}
			if b, err := os.ReadFile(filepath.Join(dir, "e/1/a")); err != nil || string(b) != "content" {
				t.Errorf("%v at %s: the object holds %q, %v", err, fired, b, err)
			}
		}
		if total < 8 {
			t.Errorf("Create has %d operations, which are too few to be true", total)
		}
	}
}

// TestDirectorySyncFails: an object whose name may not be durable does not count as one that exists.
func TestDirectorySyncFails(t *testing.T) {
	failing := false
	fsys := faultfs.FailVerb("syncdir", &failing, syscall.EIO)
	_, s := openDir(t, Options{FS: fsys})
	if err := s.Create(t.Context(), "e/first", Bytes("content"), CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	failing = true
	for range 2 {
		if err := s.Create(t.Context(), "e/a", Bytes("content"), CreateOptions{}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("while the directory cannot be synced: %v", err)
		}
	}
	failing = false
	if err := s.Create(t.Context(), "e/a", Bytes("content"), CreateOptions{}); !errors.Is(err, ErrExists) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestDirectoryReadFaults: a disk that cannot be read is not a missing object.
func TestDirectoryReadFaults(t *testing.T) {
	fsys := &faultfs.FS{Unreadable: func(string) (int64, error) { return 3, syscall.EIO }}
	_, s := openDir(t, Options{FS: fsys})
	if err := s.Create(t.Context(), "a", Bytes("content"), CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := s.Get(t.Context(), "a", Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if b, err := io.ReadAll(o); !errors.Is(err, ErrUnavailable) || string(b) != "con" {
		t.Errorf("%q, %v, want %v", b, err, ErrUnavailable)
	}
}

func TestDirectoryCutFile(t *testing.T) {
	dir, s := openDir(t, Options{})
	if err := s.Create(t.Context(), "a", Bytes("content"), CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := s.Get(t.Context(), "a", Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := os.Truncate(filepath.Join(dir, "a"), 3); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(o); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%q, %v, want %v", b, err, ErrCorrupt)
	}
}

// TestAbandonedFiles: what a killed process left goes when a store is opened, and
// what is being written stays.
func TestAbandonedFiles(t *testing.T) {
	dir, _ := openDir(t, Options{})
	old, young := filepath.Join(dir, incoming, "old"), filepath.Join(dir, incoming, "young")
	before := time.Now().Add(-abandoned - time.Hour)
	if err := errors.Join(os.WriteFile(old, nil, 0o600), os.WriteFile(young, nil, 0o600), os.Chtimes(old, before, before)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), "file://"+dir, Options{}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, incoming))
	if err != nil || len(entries) != 1 || entries[0].Name() != "young" {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// TestForeignFiles: what other systems leave on disks is not listed.
func TestForeignFiles(t *testing.T) {
	dir, s := openDir(t, Options{})
	for _, name := range []string{".Trashes", "a b", "System Volume Information"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for info, err := range s.List(t.Context(), "", "") {
		t.Errorf("listed: %+v, %v", info, err)
	}
	if _, err := s.Stat(t.Context(), "link"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Stat of a link: %v", err)
	}
}
