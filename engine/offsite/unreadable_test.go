package offsite_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"holdfast/engine/offsite"
	"holdfast/internal/testenv"
)

// awaitCheckpoint waits for a checkpoint that was begun after the call.
func (m *machine) awaitCheckpoint() {
	m.t.Helper()
	began := time.Now()
	m.Offsite.CheckpointSoon()
	testenv.Within(m.t, time.Minute, "a checkpoint", func() bool {
		at := m.Offsite.Status().Checkpoint
		return at != nil && at.After(began)
	})
}

// names returns the names of a database's things of a kind in the newest checkpoint.
func (m *machine) names(database, kind string) []string {
	m.t.Helper()
	names, err := offsite.NewestNames(m.t.Context(), m.at, database, kind)
	if err != nil {
		m.t.Fatal(err)
	}
	return names
}

// TestUnreadableBackups: what cannot be read of one database stays as the copy has it, is named, and holds up nothing else.
func TestUnreadableBackups(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := startMachine(t)
	manifest, _ := m.createDatabase("manifest")
	repository, _ := m.createDatabase("repository")
	whole, _ := m.createDatabase("whole")
	for _, id := range []string{manifest.ID, repository.ID} {
		m.backUp(id)
	}
	m.awaitCheckpoint()
	had := map[string][]string{}
	for _, id := range []string{manifest.ID, repository.ID} {
		had[id] = m.names(id, offsite.KindRepository)
	}
	manifests, err := filepath.Glob(filepath.Join(m.Recovery.BackupDirectory(manifest.ID), "repository", "manifests", "*.manifest"))
	if err != nil || len(manifests) != 1 {
		t.Fatal(manifests, err)
	}
	unreadable := []string{manifests[0], filepath.Join(m.Recovery.BackupDirectory(repository.ID), "repository")}
	for _, path := range unreadable {
		info, err := os.Stat(path)
		if err == nil {
			err = os.Chmod(path, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(path, info.Mode())
	}
	m.backUp(whole.ID)
	m.kill() // so that nothing is open, and nothing was read before
	m.awaitCheckpoint()
	want := []string{manifest.ID, repository.ID}
	slices.Sort(want)
	if st := m.Offsite.Status(); !slices.Equal(st.Unreadable, want) || st.State != "copying" {
		t.Errorf("%s, unreadable are %v, not %v", st.State, st.Unreadable, want)
	}
	for id, names := range had {
		if now := m.names(id, offsite.KindRepository); !slices.Equal(now, names) {
			t.Errorf("the copy has %v of %s, and had %v", now, id, names)
		}
	}
	if len(m.names(whole.ID, offsite.KindRepository)) == 0 {
		t.Error("the copy has no backup of the database that can be read")
	}
	for _, path := range unreadable {
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.awaitCheckpoint()
	if st := m.Offsite.Status(); len(st.Unreadable) > 0 {
		t.Errorf("%v", st.Unreadable)
	}
}
