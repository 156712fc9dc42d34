package recovery

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// openCore returns a core with metadata of its own, closed at the end of the test.
func openCore(t *testing.T) *core.Core {
	t.Helper()
	dir := t.TempDir()
	db, err := meta.Open(filepath.Join(dir, core.MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := core.New(core.Config{DataDir: dir, Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, db)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A database that is backed up often does not delay the verification of others.
func TestOrderOfVerifications(t *testing.T) {
	t.Parallel()
	c := openCore(t)
	s := New(c, databases.New(c))
	update := func(do func(tx *meta.Tx) error) {
		t.Helper()
		if err := c.Meta.Update(do); err != nil {
			t.Fatal(err)
		}
	}
	database := func(name string) string {
		now, id := c.Clock(), c.NewID(model.ResourceDatabase)
		update(func(tx *meta.Tx) error {
			return tx.Databases().Insert(model.Database{
				ID: id, Organization: "org_1", Project: "prj_1", Name: name,
				Status: model.DatabaseAvailable, CreatedAt: now, UpdatedAt: now,
			})
		})
		return id
	}
	backup := func(database string) model.Backup {
		now := c.Clock()
		b := model.Backup{
			ID: c.NewID(model.ResourceBackup), Organization: "org_1", Database: database, Status: model.BackupCompleted,
			StartedAt: now, CompletedAt: &now, Verification: model.Verification{Status: model.VerificationUnverified},
		}
		update(func(tx *meta.Tx) error { return tx.Backups().Insert(b) })
		return b
	}
	verifyDue := func(what string, want model.Backup) {
		t.Helper()
		due, err := s.dueVerification(t.Context())
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
	verifyDue("the only one", backup(busy))
	waiting := backup(calm)
	var newest model.Backup
	for range 3 {
		newest = backup(busy)
	}
	verifyDue("never verified before", waiting)
	verifyDue("the newest of those of a database", newest)
	second := backup(calm)
	for n := range 3 {
		newest = backup(busy)
		if n == 0 {
			verifyDue("verified longer ago", second)
		}
	}
	verifyDue("again the newest", newest)
}

// A failure that says nothing about the backup is retried after increasing waits.
func TestVerdict(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &core.Core{Clock: func() time.Time { return now }}
	s := New(c, databases.New(c))
	v := model.Verification{Status: model.VerificationUnverified}
	if v = s.verdict(v, "", noSpaceError{cause: errors.New("no room")}); v.Attempts != 0 || v.Status != model.VerificationUnverified || !v.NotBefore.After(now) {
		t.Errorf("without room: %+v", v)
	}
	for attempt := 1; attempt < verificationAttempts; attempt++ {
		v = s.verdict(v, "", context.DeadlineExceeded)
		if v.Status != model.VerificationUnverified || v.Attempts != attempt || !v.NotBefore.Equal(now.Add(verificationRetry<<(attempt-1))) {
			t.Errorf("attempt %d: %+v", attempt, v)
		}
	}
	if v = s.verdict(v, "", context.DeadlineExceeded); v.Status != model.VerificationFailed || v.Detail == "" || v.At == nil {
		t.Errorf("the last attempt: %+v", v)
	}
}
