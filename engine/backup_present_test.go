package engine

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// After a restore to an older backup, that one stays until a newer one leads to the present data, however long that takes.
// Without one, the recovery is degraded.
func TestBackupOfPresentDataStays(t *testing.T) {
	t.Parallel()
	tiny, err := model.NewPlan("tiny", map[string]int64{"backup_bytes": 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t, newDataDir(t))
	cfg.Plans = map[string]model.Plan{"tiny": tiny}
	cfg.BackupRetention = 7 * 24 * time.Hour
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table steps (n int)")
	commitStep(t, c, 1)
	older := a.backUp(t, db.ID)
	commitStep(t, c, 2)
	a.backUp(t, db.ID)
	if _, err := a.Access.OrganizationSetPlan(a.call(model.ActionPlanSet), "tiny"); err != nil { // no backup can follow
		t.Fatal(err)
	}
	a.restore(t, db.ID, older.ID)
	a.awaitArchived(t, db.ID, commitStep(t, c, 3))
	lsn := answer[string](t, c, "select pg_current_wal_lsn()::text")
	a.awaitArchived(t, db.ID, commitStep(t, c, 4))
	state := func(want recovery.RecoveryState) {
		t.Helper()
		if r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID); err != nil || r.State != want {
			t.Errorf("the recovery is %s, %v, not %s", r.State, err, want)
		}
	}
	if b, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, older.ID); err != nil || b.ExpiresAt != nil {
		t.Errorf("the only backup of the present data expires at %v, %v", b.ExpiresAt, err)
	}
	by.Store(int64(cfg.BackupRetention + time.Hour))
	believe(a.Engine)
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	by.Store(0)
	plan, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{LSN: lsn}, nil)
	if err != nil || plan.Backup.ID != older.ID {
		t.Errorf("after the retention, the present data is restored from %q, %v", plan.Backup.ID, err)
	}
	state(recovery.RecoveryAvailable)
	if err := a.Recovery.BackupDelete(a.call(model.ActionBackupDelete), db.ID, older.ID); err != nil {
		t.Fatal(err)
	}
	state(recovery.RecoveryDegraded)
}

// A database that was deleted before the backup that had to follow its restore gets that when it comes back.
func TestOwedBackupAfterTrash(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	a.restore(t, db.ID, a.backUp(t, db.ID).ID)
	a.awaitIdle(t)
	testenv.Within(t, time.Minute, "the backup after the restore", func() bool { return len(a.backups(t, db.ID)) == 2 })
	a.awaitIdle(t)
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatal(err)
	}
	owed := a.backups(t, db.ID)[0]
	if err := a.Recovery.UpdateBackup(owed.ID, func(b *model.Backup) { b.Status, b.Cut = model.BackupFailed, true }); err != nil { // as the deletion cancels it
		t.Fatal(err)
	}
	if _, err := a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), db.ID); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "the backup that is owed", func() bool {
		newest := a.backups(t, db.ID)[0]
		return newest.ID != owed.ID && newest.Status == model.BackupCompleted
	})
}

// The sweep finishes the deletion of a backup that failed after it was committed.
func TestPendingDeletionOfBackup(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	b := a.backUp(t, db.ID)
	if err := a.Recovery.MarkForDeletion(a.call(model.ActionBackupDelete), db.ID, b.ID); err != nil {
		t.Fatal(err)
	}
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, repo, err := a.Recovery.Archives(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	if stored, err := repo.Backups(); err != nil || len(stored) != 0 || len(a.backups(t, db.ID)) != 0 {
		t.Errorf("after a sweep: stored %v, listed %d, %v", stored, len(a.backups(t, db.ID)), err)
	}
}

// Damage that a restore finds while the backup is being verified stays noted when the verification ends well.
func TestDamageDuringVerification(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, verifying(t))
	db, _ := a.createDatabase(t, "shop")
	b, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), db.ID)
	if err != nil {
		t.Fatal(err)
	}
	status := func() model.VerificationStatus {
		now, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, b.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now.Verification.Status
	}
	testenv.Within(t, time.Minute, "the verification", func() bool { return status() == model.VerificationRunning })
	if err := a.Recovery.UpdateBackup(b.ID, func(b *model.Backup) { b.Verification.Status = model.VerificationFailed }); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "the end of the verification", func() bool {
		return slices.ContainsFunc(a.operations(t, db.ID), func(op model.DatabaseOperation) bool {
			return op.Type == model.OperationVerification && op.CompletedAt != nil
		})
	})
	if got := status(); got != model.VerificationFailed {
		t.Errorf("the damaged backup is %s", got)
	}
}

// A database that is restored from another's backup may be reached from where that one may be, and from nowhere else.
func TestRestoreNewKeepsAllowlist(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	b := a.backUp(t, db.ID)
	if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.1/32"}); err != nil {
		t.Fatal(err)
	}
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, new("copy"))
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	want := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	if got := a.record(t, op.NewDatabase).Allowlist; !slices.Equal(got, want) {
		t.Errorf("the new database may be reached from %v, not %v", got, want)
	}
	branch, err := a.Recovery.BranchCreate(t.Context(), a.call(model.ActionBranchCreate), db.ID, recovery.NewBranch{Name: "branch"})
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, branch.Started, model.OperationCompleted)
	if got := a.record(t, branch.ID).Allowlist; !slices.Equal(got, want) {
		t.Errorf("the branch may be reached from %v, not %v", got, want)
	}
}

// A backup is not removed while a restore holds the backups, but it is while another is being made.
func TestBackupDeleteBesideClaims(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	b := a.backUp(t, db.ID)
	for _, held := range []struct {
		by      string
		refused bool
	}{{"a restore", true}, {recovery.BackupClaim, false}} {
		release, err := a.Core.Claims.Take(db.ID+"/backup", held.by)
		if err != nil {
			t.Fatal(err)
		}
		err = a.Recovery.BackupDelete(a.call(model.ActionBackupDelete), db.ID, b.ID)
		release()
		if refused := model.CodeOf(err) == model.CodeConflict; refused != held.refused || err != nil && !refused {
			t.Errorf("during %s: %v", held.by, err)
		}
	}
	if list, err := a.Recovery.BackupList(a.call(model.ActionBackupList), db.ID, recovery.BackupFilter{}, core.Page{}); err != nil || len(list.Items) != 0 {
		t.Errorf("%d backups are left, %v", len(list.Items), err)
	}
}
