package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/backup/repository"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// oldestWAL returns the name of the first archived segment of a database's first data directory.
func (a *appliance) oldestWAL(t *testing.T, database string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(filepath.Join(a.Recovery.BackupDirectory(database), recovery.WALDirectory), func(path string, d os.DirEntry, err error) error {
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

// statuses returns the statuses of a database's backups, newest first.
func (a *appliance) statuses(t *testing.T, database string) (all []model.BackupStatus) {
	t.Helper()
	for _, b := range a.backups(t, database) {
		all = append(all, b.Status)
	}
	return all
}

// A damaged manifest does not prevent the adoption of other backups. An unreadable backup is not removed, and neither
// is its WAL.
func TestRecoverBehindADamagedManifest(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	view, _ := a.createDatabase(t, "shop")
	db, err := a.Databases.Record(view.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []bool{false, true, true, false} {
		a.unrecordedBackup(t, db, known)
	}
	a.abandon(t)
	manifests, err := filepath.Glob(filepath.Join(a.Recovery.BackupDirectory(db.ID), "repository", "manifests", "*"))
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
		if err := a.Recovery.PruneWAL(db.ID); err != nil {
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

// Unreadable backups may be complete: they are recovered once they can be read.
func TestRecoverWithoutTheRepository(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	view, _ := a.createDatabase(t, "shop")
	db, err := a.Databases.Record(view.ID)
	if err != nil {
		t.Fatal(err)
	}
	a.unrecordedBackup(t, db, true)
	a.abandon(t)
	held, err := repository.Open(filepath.Join(a.Recovery.BackupDirectory(db.ID), "repository"))
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

// TestAdoptedBackup: a backup that was complete when the appliance died, but whose record is lost or out of date, gets
// the record that it would have had.
func TestAdoptedBackup(t *testing.T) {
	t.Parallel()
	a, db, _, _ := startStepped(t)
	made := map[string]model.Backup{}
	for _, name := range []string{"running", "lost"} {
		_, done, err := a.Recovery.BeginBackup(a.Core.System(model.ActionBackupCreate, a.org, databases.DatabaseResource(db.Database)), db.Database, model.BackupScheduled)
		if err != nil {
			t.Fatal(err)
		}
		<-done
		made[name] = a.backups(t, db.ID)[0]
		a.awaitIdle(t)
	}
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
		lost := made["running"]
		_, err := tx.Backups().Update(lost.ID, func(b *model.Backup) error {
			*b = model.Backup{
				ID: lost.ID, Organization: lost.Organization, Database: lost.Database, Type: lost.Type, Status: model.BackupRunning,
				StartedAt: lost.StartedAt, Version: lost.Version, Generation: lost.Generation, Verification: lost.Verification,
			}
			return nil
		})
		if err != nil {
			return err
		}
		return tx.Backups().Delete(made["lost"].ID)
	}); err != nil {
		t.Fatal(err)
	}
	a.abandon(t)
	a = a.reopen(t)
	for name, was := range made {
		now, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, was.ID)
		if err != nil || now.Status != model.BackupCompleted {
			t.Errorf("%s: %+v, %v", name, now, err)
		}
		if now.Type != was.Type || now.SizeBytes != was.SizeBytes || now.StoredBytes != was.StoredBytes || now.ManifestBLAKE3 != was.ManifestBLAKE3 ||
			now.StartLSN != was.StartLSN || now.StopLSN != was.StopLSN || now.Version != was.Version || now.Timeline != was.Timeline {
			t.Errorf("%s: it was %+v, and is %+v", name, was, now)
		}
		// The manifest's times of the copying are slightly inside the record's.
		if off := now.StartedAt.Sub(was.StartedAt); name == "running" && off != 0 || off < 0 || off > time.Second {
			t.Errorf("%s: it was begun at %v, and now at %v", name, was.StartedAt, now.StartedAt)
		}
	}
}
