package engine

import (
	"syscall"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// A backup is made of the current generation, even if its caller has an older record: it does not stop the current WAL
// receiver in favour of a replaced generation.
func TestBackupOfRestoredSinceItWasAskedFor(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	view, _ := a.createDatabase(t, "shop")
	b := a.backUp(t, view.ID)
	stale, err := a.Databases.Record(view.ID)
	if err != nil {
		t.Fatal(err)
	}
	a.restore(t, view.ID, b.ID)
	testenv.Within(t, time.Minute, "the backup that follows a restore", func() bool { return len(a.backups(t, view.ID)) == 2 })
	a.awaitIdle(t)

	next, done, err := a.Recovery.BeginBackup(a.call(model.ActionBackupCreate), stale, model.BackupManual)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the backup did not end")
	}
	next, err = a.Recovery.BackupGet(a.call(model.ActionBackupGet), view.ID, next.ID)
	if err != nil || next.Status != model.BackupCompleted || next.Generation != 2 {
		t.Errorf("the backup is %s of generation %d (%s), %v", next.Status, next.Generation, next.Error, err)
	}
	if generation := a.Recovery.ReceivedGeneration(view.ID); generation != 2 {
		t.Errorf("the WAL of generation %d is received", generation)
	}
}

// A backup that is not yet completed can be restored and pinned later; a failed one never can.
func TestUseOfABackupThatIsNotCompleted(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	b := a.backUp(t, db.ID)
	for status, want := range map[model.BackupStatus]model.Code{
		model.BackupPending: model.CodeConflict, model.BackupRunning: model.CodeConflict, model.BackupFailed: model.CodeForbidden,
	} {
		if err := a.Recovery.UpdateBackup(b.ID, func(b *model.Backup) { b.Status = status }); err != nil {
			t.Fatal(err)
		}
		for what, use := range map[string]func() error{
			"restore": func() error {
				_, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, nil)
				return err
			},
			"restore into a new database": func() error {
				_, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, new("copy"))
				return err
			},
			"pin": func() error {
				_, err := a.Recovery.BackupPin(a.call(model.ActionBackupPin), db.ID, b.ID, true, "")
				return err
			},
		} {
			if err := use(); model.CodeOf(err) != want {
				t.Errorf("%s of a %s backup: %v, want %s", what, status, err, want)
			}
		}
	}
}

// TestBackupIsPendingFirst: the response to a backup request shows the backup, and its operation, before it runs.
func TestBackupIsPendingFirst(t *testing.T) {
	t.Parallel()
	a, db, _, _ := startStepped(t)
	session := a.receiverSession(t, db.ID)
	if err := syscall.Kill(session, syscall.SIGSTOP); err != nil { // it waits for the archive
		t.Fatal(err)
	}
	db2, b, op, err := a.Recovery.RecordBackup(a.call(model.ActionBackupCreate), db.Database, model.BackupManual)
	if err == nil {
		err = syscall.Kill(session, syscall.SIGCONT)
	}
	if err != nil || b.Status != model.BackupPending || op.Status != model.OperationPending {
		t.Fatalf("%+v, %+v, %v", b, op, err)
	}
	if ops := a.operations(t, db2.ID); ops[0].Status != model.OperationPending {
		t.Errorf("%+v", ops[0])
	}
	if err := a.Recovery.StartBackup(b.ID, op.ID); err != nil {
		t.Fatal(err)
	}
	if ops := a.operations(t, db2.ID); ops[0].Status != model.OperationRunning || a.backups(t, db.ID)[0].Status != model.BackupRunning {
		t.Errorf("%+v, %+v", ops[0], a.backups(t, db.ID)[0])
	}
	a.Recovery.RunBackup(t.Context(), db2, b, op)
	if ops := a.operations(t, db2.ID); ops[0].Status != model.OperationCompleted || a.backups(t, db.ID)[0].Status != model.BackupCompleted {
		t.Errorf("%+v, %+v", ops[0], a.backups(t, db.ID)[0])
	}
}
