package engine

import (
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// TestTrialPassesOverADatabaseWithoutABackup: a database whose first backup the copy lacks does not keep the others from their trials.
func TestTrialPassesOverADatabaseWithoutABackup(t *testing.T) {
	t.Parallel()
	a := startCopied(t, offsiteAt(t, "file://"+t.TempDir()))
	db, _ := a.createDatabase(t, "shop")
	backup := a.backUp(t, db.ID)
	a.createDatabase(t, "young")
	a.createDatabase(t, "younger")
	testenv.Within(t, time.Minute, "a checkpoint with the backup", func() bool {
		st := a.Offsite.Status()
		a.Offsite.CheckpointSoon()
		return st.Checkpoint != nil && st.Checkpoint.After(*backup.CompletedAt)
	})
	for n := range 3 {
		if result, err := a.Offsite.VerifyRestore(t.Context()); err != nil || result.Name != "shop" || result.Error != "" {
			t.Errorf("trial %d: %+v, %v", n+1, result, err)
		}
	}
}
