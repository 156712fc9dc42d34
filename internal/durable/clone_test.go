package durable

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCloneOrCopy: the copy has the content, and its own from then on, whether or not the blocks are shared.
func TestCloneOrCopy(t *testing.T) {
	dir := t.TempDir()
	t.Logf("the file system can clone: %t", CanClone(dir))
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("CanClone left %v, %v", left, err)
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, content, 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := os.OpenFile(from, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	dest, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer dest.Close()
	if err := CloneOrCopy(source, dest); err != nil {
		t.Fatal(err)
	}
	if _, err := source.WriteAt([]byte("changed"), 5000); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
