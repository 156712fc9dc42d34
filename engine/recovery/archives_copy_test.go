package recovery

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"holdfast/engine/core"
)

// TestArchivesOfAFailingDisk: a directory that cannot be looked at is not one that was removed: what is open stays open.
func TestArchivesOfAFailingDisk(t *testing.T) {
	t.Parallel()
	s := &Service{core: &core.Core{Config: core.Config{DataDir: t.TempDir()}}}
	opened := s.archives.get("db_1")
	path := s.BackupDirectory("db_1")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, path); err != nil { // which leads nowhere
		t.Fatal(err)
	}
	if _, _, err := s.Archives("db_1"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that cannot be looked at: %v", err)
	}
	if s.archives.known("db_1") != opened {
		t.Error("what is open was forgotten")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Archives("db_1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that was removed: %v", err)
	}
	if s.archives.known("db_1") != nil {
		t.Error("what was removed is still known")
	}
}
