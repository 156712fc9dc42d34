package engine

import (
	"testing"
	"time"

	"holdfast/engine/model"
)

// A backup is of the generation that serves, whatever its caller knew: it does
// not end the receiving of its WAL for one that was replaced.
func TestBackupOfRestoredSinceItWasAskedFor(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	view, _ := a.createDatabase(t, "shop")
	b := a.backUp(t, view.ID)
	stale, err := a.record(view.ID)
	if err != nil {
		t.Fatal(err)
	}
	a.restore(t, view.ID, b.ID)
	within(t, time.Minute, "the backup that follows a restore", func() bool { return len(a.backups(t, view.ID)) == 2 })
	a.settled(t)

	next, done, err := a.beginBackup(a.call(model.ActionBackupCreate), stale, model.BackupManual)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the backup did not end")
	}
	next, err = a.BackupGet(a.call(model.ActionBackupGet), view.ID, next.ID)
	if err != nil || next.Status != model.BackupCompleted || next.Generation != 2 {
		t.Errorf("the backup is %s of generation %d (%s), %v", next.Status, next.Generation, next.Error, err)
	}
	if archive := a.archives.get(view.ID); archive.receives != 2 {
		t.Errorf("the WAL of generation %d is received", archive.receives)
	}
}
