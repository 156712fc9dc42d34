package engine

import (
	"testing"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// A database that is backed up often does not keep the proofs from the others.
func TestOrderOfProofs(t *testing.T) {
	t.Parallel()
	a := openEngine(t, testConfig(t, newDataDir(t)))
	update := func(do func(tx *meta.Tx) error) {
		t.Helper()
		if err := a.Core.Meta.Update(do); err != nil {
			t.Fatal(err)
		}
	}
	database := func(name string) string {
		now, id := a.Core.Clock(), a.Core.NewID(model.ResourceDatabase)
		update(func(tx *meta.Tx) error {
			return tx.Databases().Insert(model.Database{
				ID: id, Organization: a.org, Project: a.project, Name: name,
				Status: model.DatabaseAvailable, CreatedAt: now, UpdatedAt: now,
			})
		})
		return id
	}
	backup := func(database string) model.Backup {
		now := a.Core.Clock()
		b := model.Backup{
			ID: a.Core.NewID(model.ResourceBackup), Organization: a.org, Database: database, Status: model.BackupCompleted,
			StartedAt: now, CompletedAt: &now, Verification: model.Verification{Status: model.VerificationUnverified},
		}
		update(func(tx *meta.Tx) error { return tx.Backups().Insert(b) })
		return b
	}
	proveDue := func(what string, want model.Backup) {
		t.Helper()
		due, err := a.Recovery.DueProof()
		if err != nil || due.ID != want.ID {
			t.Fatalf("%s: %s of %s is due, not %s: %v", what, due.ID, due.Database, want.ID, err)
		}
		update(func(tx *meta.Tx) error {
			_, err := tx.Backups().Update(due.ID, func(b *model.Backup) error {
				b.Verification.Status = model.VerificationVerified
				return nil
			})
			return err
		})
	}
	busy, calm := database("busy"), database("calm")
	proveDue("the only one", backup(busy))
	waiting := backup(calm)
	var newest model.Backup
	for range 3 {
		newest = backup(busy)
	}
	proveDue("never proven before", waiting)
	proveDue("the newest of those of a database", newest)
	second := backup(calm)
	for n := range 3 {
		newest = backup(busy)
		if n == 0 {
			proveDue("proven longer ago", second)
		}
	}
	proveDue("again the newest", newest)
}
