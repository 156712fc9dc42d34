package engine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"holdfast/backup"
	"holdfast/backup/repository"
	"holdfast/engine/model"
)

// affected reads everything stored of a database's backups, using only the files, and returns the damaged backups.
func (a *appliance) affected(t *testing.T, database string) []string {
	t.Helper()
	r, err := repository.OpenForReading(filepath.Join(a.Recovery.BackupDirectory(database), "repository"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	report, err := r.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return report.Affected
}

// mustMeetDamage reads a backup up to the first damage, as a restore and a verification do.
func (a *appliance) mustMeetDamage(t *testing.T, b model.Backup) {
	t.Helper()
	plan, err := a.Recovery.PlanEnd(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	err = a.Recovery.Unpack(t.Context(), plan, filepath.Join(t.TempDir(), "data"), backup.RestoreOptions{Workers: 1})
	if !errors.Is(err, repository.ErrDamaged) {
		t.Fatalf("the damage is not met: %v", err)
	}
}

// The first backup after damage is complete, however much is damaged and whichever operation found part of it.
func TestBackupAfterDamage(t *testing.T) {
	t.Parallel()
	for what, meet := range map[string]func(t *testing.T, a *appliance, b model.Backup){
		"a verification": func(t *testing.T, a *appliance, b model.Backup) {
			a.mustMeetDamage(t, b)
			if err := a.Recovery.UpdateBackup(b.ID, func(b *model.Backup) { b.Verification.Status = model.VerificationFailed }); err != nil {
				t.Fatal(err)
			}
		},
		"a restore": func(t *testing.T, a *appliance, b model.Backup) { a.mustMeetDamage(t, b) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := startEngine(t)
			db, c := a.createDatabase(t, "shop")
			run(t, c, "create table t as select n, md5(n::text) text from generate_series(1, 50000) n")
			b := a.backUp(t, db.ID)
			spoil(t, a.packOf(t, db.ID))
			meet(t, a, b)
			next := a.backUp(t, db.ID)
			if bad := a.affected(t, db.ID); !slices.Equal(bad, []string{b.ID}) {
				t.Errorf("of %s and %s these are damaged: %v", b.ID, next.ID, bad)
			}
		})
	}
}

// A missing index file fails no backup.
func TestBackupAfterALostIndex(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	b := a.backUp(t, db.ID)
	a.abandon(t)
	files, err := filepath.Glob(filepath.Join(a.Recovery.BackupDirectory(db.ID), "repository", "index", "*.index"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	next := a.reopen(t)
	last := next.backUp(t, db.ID)
	if bad := next.affected(t, db.ID); !slices.Equal(bad, []string{b.ID}) {
		t.Errorf("of %s and %s these are damaged: %v", b.ID, last.ID, bad)
	}
}
