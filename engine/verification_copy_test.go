package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// TestVerifyCopy: a trial from a copy restores the newest backup that the copy has: one that was completed while the copy was made
// is not missing there. Without any there is nothing to try.
func TestVerifyCopy(t *testing.T) {
	t.Parallel()
	a, db, _, first := startStepped(t)
	dir := filepath.Join(t.TempDir(), "copy")
	testenv.Within(t, time.Minute, "a copy between two changes of the archive", func() bool {
		return os.RemoveAll(dir) == nil && os.CopyFS(dir, os.DirFS(a.Recovery.BackupDirectory(db.ID))) == nil
	})
	a.backUp(t, db.ID)
	if detail, err := a.Recovery.VerifyCopy(t.Context(), db.Database, dir); err != nil || detail == "" {
		t.Errorf("the trial: %q, %v", detail, err)
	}
	if err := os.Remove(filepath.Join(dir, "repository", "manifests", first.ID+".manifest")); err != nil {
		t.Fatal(err)
	}
	for _, without := range []string{dir, t.TempDir(), filepath.Join(t.TempDir(), "nothing")} {
		_, err := a.Recovery.VerifyCopy(t.Context(), db.Database, without)
		if model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "has no backup of the database shop") {
			t.Errorf("without a backup: %v", err)
		}
	}
}
