package recovery

import (
	"errors"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// A verification that a clock postponed which was a year ahead is due once it is right. Others wait.
func TestPostponedByAClockAhead(t *testing.T) {
	t.Parallel()
	c := openCore(t)
	s := New(c, databases.New(c))
	now := c.Clock()
	db := model.Database{
		ID: c.NewID(model.ResourceDatabase), Organization: "org_1", Project: "prj_1", Name: "shop",
		Status: model.DatabaseAvailable, CreatedAt: now, UpdatedAt: now,
	}
	b := model.Backup{
		ID: c.NewID(model.ResourceBackup), Organization: "org_1", Database: db.ID, Status: model.BackupCompleted,
		StartedAt: now, CompletedAt: &now, Verification: model.Verification{Status: model.VerificationUnverified},
	}
	if err := c.Meta.Update(func(tx *meta.Tx) error {
		return errors.Join(tx.Databases().Insert(db), tx.Backups().Insert(b))
	}); err != nil {
		t.Fatal(err)
	}
	for notBefore, want := range map[time.Duration]bool{0: true, time.Minute: false, 365 * 24 * time.Hour: true} {
		at := now.Add(notBefore)
		if err := c.Meta.Update(func(tx *meta.Tx) error {
			return tx.Backups().Change(b.ID, func(b *model.Backup) { b.Verification.NotBefore = at })
		}); err != nil {
			t.Fatal(err)
		}
		if due, err := s.dueVerification(t.Context()); (due.ID != "") != want || err != nil {
			t.Errorf("postponed by %v: the verification of %q, %v", notBefore, due.ID, err)
		}
	}
}
