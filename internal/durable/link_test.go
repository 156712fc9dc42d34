package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestLinkTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.MkdirAll(filepath.Join(from, "a", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "a/y"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("x", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if err := LinkTree(from, to); err != nil {
		t.Fatal(err)
	}
	expectOnly(t, to, "a", "x")
	expectOnly(t, filepath.Join(to, "a"), "empty", "y")
	expectFile(t, filepath.Join(to, "a", "y"), "a/y", 0o600)
	if err := LinkTree(from, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto what exists: %v", err)
	}
	if err := LinkTree(filepath.Join(dir, "none"), filepath.Join(dir, "no")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is absent: %v", err)
	}
	if err := LinkTree(filepath.Join(from, "x"), filepath.Join(dir, "file")); err != nil {
		t.Error(err)
	}
	expectFile(t, filepath.Join(dir, "file"), "x", 0o600)
}
