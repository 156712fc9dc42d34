package backup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSyncFiles: every file and directory is synced, and one that cannot be is
// an error.
func TestSyncFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "b", "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syncFiles(dir); err != nil {
		t.Error(err)
	}
	if err := os.Symlink("nothing", filepath.Join(dir, "a", "b", "gone")); err != nil {
		t.Fatal(err)
	}
	if err := syncFiles(dir); err == nil {
		t.Error("a file that cannot be opened counts as durable")
	}
}
