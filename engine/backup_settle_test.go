package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/backup/repository"
	"holdfast/engine/model"
)

// oldestWAL returns the name of the first segment that is archived of a database's
// first data directory.
func (a *appliance) oldestWAL(t *testing.T, database string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(filepath.Join(a.backupDirectory(database), walDirectory), func(path string, d os.DirEntry, err error) error {
		if name := filepath.Base(path); err == nil && !d.IsDir() && len(name) >= 24 {
			names = append(names, name[:24])
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return slices.Min(names)
}

// statuses returns the statuses of a database's backups, the newest first.
func (a *appliance) statuses(t *testing.T, database string) (all []model.BackupStatus) {
	t.Helper()
	for _, b := range a.backups(t, database) {
		all = append(all, b.Status)
	}
	return all
}

// A damaged manifest keeps no other backup from being adopted, nor is one removed,
// or its WAL, because nobody could look at it.
func TestSettleBehindADamagedManifest(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	view, _ := a.createDatabase(t, "shop")
	db, err := a.record(view.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []bool{false, true, true, false} {
		a.unrecordedBackup(t, db, known)
	}
	a.abandon(t)
	manifests, err := filepath.Glob(filepath.Join(a.backupDirectory(db.ID), "repository", "manifests", "*"))
	if err != nil || len(manifests) != 4 {
		t.Fatal(manifests, err)
	}
	for _, path := range manifests[:2] {
		flipByte(t, path)
	}
	oldest := a.oldestWAL(t, db.ID)
	for n := range 2 {
		if n > 0 {
			a.abandon(t)
		}
		a = a.reopen(t)
		want := []model.BackupStatus{model.BackupCompleted, model.BackupCompleted, model.BackupFailed}
		if got := a.statuses(t, db.ID); !slices.Equal(got, want) {
			t.Errorf("the backups are %v, not %v", got, want)
		}
		if b := a.backups(t, db.ID)[2]; !strings.Contains(b.Error, filepath.Base(manifests[1])) {
			t.Errorf("a damaged one says %q", b.Error)
		}
		if err := a.pruneWAL(db.ID); err != nil {
			t.Fatal(err)
		}
		if now := a.oldestWAL(t, db.ID); now != oldest {
			t.Errorf("the WAL began at %s, and does at %s", oldest, now)
		}
	}
	for _, path := range []string{manifests[0], manifests[2], manifests[3]} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// Backups that nobody can look at may be complete: they are settled when
// somebody can.
func TestSettleWithoutTheRepository(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	view, _ := a.createDatabase(t, "shop")
	db, err := a.record(view.ID)
	if err != nil {
		t.Fatal(err)
	}
	a.unrecordedBackup(t, db, true)
	a.abandon(t)
	held, err := repository.Open(filepath.Join(a.backupDirectory(db.ID), "repository"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	a = a.reopen(t)
	if got := a.statuses(t, db.ID); !slices.Equal(got, []model.BackupStatus{model.BackupRunning}) {
		t.Errorf("without the repository: %v", got)
	}
	a.abandon(t)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	a = a.reopen(t)
	if got := a.statuses(t, db.ID); !slices.Equal(got, []model.BackupStatus{model.BackupCompleted}) {
		t.Errorf("with it: %v", got)
	}
}
