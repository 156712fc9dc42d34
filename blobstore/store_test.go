package blobstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openStore opens a store that the test closes.
func openStore(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// put commits one blob.
func put(t testing.TB, s *Store, content string) (Ref, error) {
	t.Helper()
	w, err := s.Create(t.Context())
	if err != nil {
		return "", err
	}
	if _, err := w.Write([]byte(content)); err != nil {
		return "", err
	}
	ref, _, err := w.Commit()
	return ref, err
}

// publish publishes one blob, whose note is its content.
func publish(t testing.TB, s *Store, content string) (Ref, error) {
	t.Helper()
	w, err := s.Create(t.Context())
	if err != nil {
		return "", err
	}
	if _, err := w.Write([]byte(content)); err != nil {
		return "", err
	}
	return w.Publish([]byte(content), nil)
}

// filesUnder lists the regular files of the store, relative to dir.
func filesUnder(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	s := openStore(t, dir, Options{})
	if _, err := put(t, s, "secret"); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOneProcess(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	w, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("second Open: %v", err)
	}
	if _, _, err := w.Commit(); err != nil {
		t.Errorf("the refused Open disturbed a writer: %v", err)
	}
}

func TestRollingDirectories(t *testing.T) {
	dir := t.TempDir()
	var refs []Ref
	for range 2 { // the second round continues in the last directory
		s := openStore(t, dir, Options{DirectorySize: 4})
		for range 7 {
			ref, err := put(t, s, "x")
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, ref)
		}
		s.Close()
	}
	numbers, err := listNumbered(filepath.Join(dir, "blobs"))
	if err != nil || len(numbers) != 4 {
		t.Errorf("14 blobs, 4 to a directory, lie in directories %v, %v", numbers, err)
	}
	s := openStore(t, dir, Options{DirectorySize: 4})
	if err := s.Remove(refs...); err != nil {
		t.Fatal(err)
	}
	s.Close()
	openStore(t, dir, Options{DirectorySize: 4})
	if numbers, _ = listNumbered(filepath.Join(dir, "blobs")); len(numbers) != 1 || numbers[0] != 4 {
		t.Errorf("of the empty directories %v are left, want the newest", numbers)
	}
}

func TestOpenSweepsUnfinished(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	if _, err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	openStore(t, dir, Options{})
	if names := filesUnder(t, dir); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

func TestOpenWithoutParent(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "absent", "blobs"), Options{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestOpenRefusesWhatIsNotAStore(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "incoming")
	if err := os.WriteFile(mine, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "not a blob store") {
		t.Errorf("error %v", err)
	}
	if content, _ := os.ReadFile(mine); string(content) != "precious" {
		t.Error("Open changed somebody's file")
	}
}

// TestIsNew: the store tells the blobs written since it was opened from those that it found, in every directory.
func TestIsNew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	written := func(s *Store, n int) (refs []Ref) {
		for range n {
			ref, err := put(t, s, "blob")
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, ref)
		}
		return refs
	}
	s := openStore(t, dir, Options{DirectorySize: 2})
	for range 2 {
		found := written(s, 3)
		s.Close()
		s = openStore(t, dir, Options{DirectorySize: 2})
		for _, ref := range written(s, 3) {
			if !s.IsNew(ref) {
				t.Errorf("%s was there, it says", ref)
			}
		}
		for _, ref := range found {
			if s.IsNew(ref) {
				t.Errorf("%s is new, it says", ref)
			}
		}
	}
	if s.IsNew("") || s.IsNew(journalRef(PositionOf(9, 99))) {
		t.Error("what is not a file is new, it says")
	}
}
