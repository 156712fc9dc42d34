package repository

import (
	"path/filepath"
	"testing"
)

// TestLink: a copy with links keeps its backups whatever is removed from the repository afterwards.
func TestLink(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, filepath.Join(t.TempDir(), "r"))
	want := days(t, r, 0, 3)
	to := filepath.Join(t.TempDir(), "copy")
	if err := r.Link(to); err != nil {
		t.Fatal(err)
	}
	for id := range want {
		if err := r.Delete(id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	copied, err := OpenForReading(to)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if report, err := copied.Verify(t.Context(), nil); err != nil || report.Backups != len(want) || report.Err() != nil {
		t.Errorf("the copy has %d good backups: %v, %v", report.Backups, report.Err(), err)
	}
	if err := r.Link(to); err == nil {
		t.Error("linked onto what exists")
	}
}
