package engine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// asSuperuser executes statements as the appliance's role.
func (a *appliance) asSuperuser(t *testing.T, instance string, statements ...string) {
	t.Helper()
	conn, err := a.Databases.Instances.Connect(t.Context(), instance, databases.Maintenance)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// WAL that the server removed before it was archived is a gap. The gap is reported and shown, and a backup is made
// after it. Times in the gap are refused; times before and after it can be restored.
func TestGap(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	before := commitStep(t, c, 2)
	a.awaitArchived(t, db.ID, commitStep(t, c, 3))

	if err := a.Recovery.StopReceiving(db.ID); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "the slot is free", func() bool {
		conn, err := a.Databases.Instances.Connect(t.Context(), db.ID, databases.Maintenance)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		_, err = conn.Exec(t.Context(), "select pg_catalog.pg_drop_replication_slot('holdfast')")
		return err == nil
	})
	testenv.Within(t, time.Minute, "the archive's last segment to be gone from the server", func() bool {
		run(t, c, "create table if not exists filler as select repeat('x', 1000) from generate_series(1, 1000)")
		a.asSuperuser(t, db.ID, "select pg_catalog.pg_switch_wal()", "checkpoint")
		return answer[int](t, c, "select count(*) from steps") == 3 && a.serverLacks(t, db.ID, a.lastSegment(t, db.ID))
	})
	inside := commitStep(t, c, 4)
	a.asSuperuser(t, db.ID, "select pg_catalog.pg_switch_wal()", "checkpoint", "select pg_catalog.pg_switch_wal()", "checkpoint")
	record, err := a.Databases.Record(db.ID)
	if err == nil {
		err = a.Recovery.ReceiveWAL(record)
	}
	if err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "the backup behind the gap", func() bool {
		all := a.backups(t, db.ID)
		return len(all) == 2 && all[0].Status == model.BackupCompleted
	})
	a.awaitIdle(t)
	behind := commitStep(t, c, 5)
	a.awaitArchived(t, db.ID, commitStep(t, c, 6))
	r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID)
	if err != nil || len(r.Archiving.Gaps) != 1 || r.State != recovery.RecoveryAvailable {
		t.Errorf("recovery: %+v, %v", r, err)
	}
	a.awaitAudit(t, model.ActionWALGap, db.ID)
	_, err = a.Recovery.RecoveryRestore(a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: inside}, nil)
	if model.CodeOf(err) != model.CodeConflict || !strings.Contains(model.PublicMessage(err), "missing") {
		t.Errorf("a moment in the gap: %v", err)
	}
	a.goTo(t, db.ID, recovery.RestorePoint{Time: behind})
	if got := steps(t, c); got != "1 2 3 4 5" {
		t.Errorf("behind the gap: %s", got)
	}
	a.goTo(t, db.ID, recovery.RestorePoint{Time: before})
	if got := steps(t, c); got != "1 2" {
		t.Errorf("before the gap: %s", got)
	}
	r, err = a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID)
	if err != nil || len(r.Archiving.Gaps) != 1 {
		t.Errorf("gaps after restores: %+v, %v", r.Archiving.Gaps, err)
	}
}

// A database whose WAL was lost after its newest backup is degraded until there is another, and can be restored to what was
// committed before.
func TestGapWithoutBackup(t *testing.T) {
	t.Parallel()
	tiny, err := model.NewPlan("tiny", map[string]int64{"backup_bytes": 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t, newDataDir(t))
	cfg.Plans = map[string]model.Plan{"tiny": tiny}
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table steps (n int)")
	commitStep(t, c, 1)
	a.backUp(t, db.ID)
	before := commitStep(t, c, 2)
	a.awaitArchived(t, db.ID, commitStep(t, c, 3))
	if _, err := a.Access.OrganizationSetPlan(a.call(model.ActionPlanSet), "tiny"); err != nil { // no backup can follow
		t.Fatal(err)
	}
	record, err := a.Databases.Record(db.ID)
	if err == nil {
		err = a.Recovery.StopReceiving(db.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.asSuperuser(t, db.ID, "select pg_catalog.pg_drop_replication_slot('holdfast')")
	testenv.Within(t, time.Minute, "the archive's last segment to be gone from the server", func() bool {
		run(t, c, "create table if not exists filler as select repeat('x', 1000) from generate_series(1, 1000)")
		a.asSuperuser(t, db.ID, "select pg_catalog.pg_switch_wal()", "checkpoint")
		return a.serverLacks(t, db.ID, a.lastSegment(t, db.ID))
	})
	lost := commitStep(t, c, 4)
	a.asSuperuser(t, db.ID, "select pg_catalog.pg_switch_wal()", "checkpoint", "select pg_catalog.pg_switch_wal()", "checkpoint")
	if err := a.Recovery.ReceiveWAL(record); err != nil {
		t.Fatal(err)
	}
	a.wantDegraded(t, db.ID, before, lost)
	a.awaitArchived(t, db.ID, commitStep(t, c, 5))
	a.wantDegraded(t, db.ID, before, lost)
	lacking, err := a.Recovery.Unrecoverable(func(string, string) bool { return true })
	if since := lacking[db.ID]; err != nil || since.IsZero() {
		t.Errorf("a copy could rebuild it: %v, %v", lacking, err)
	}
}

// wantDegraded waits until a database has a gap in its WAL and is degraded. It can be restored to the moments before the first
// time and not to the second one.
func (a *appliance) wantDegraded(t *testing.T, database string, before, lost time.Time) {
	t.Helper()
	var r recovery.Recovery
	testenv.Within(t, time.Minute, "a gap", func() bool {
		var err error
		if r, err = a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), database); err != nil {
			t.Fatal(err)
		}
		return len(r.Archiving.Gaps) == 1
	})
	if r.State != recovery.RecoveryDegraded || r.Window.Latest.Before(before) || !r.Window.Latest.Before(lost) {
		t.Errorf("%s, up to %s; %s to %s are lost", r.State, r.Window.Latest, before, lost)
	}
	for at, can := range map[time.Time]bool{*r.Window.Latest: true, lost: false} {
		_, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), database, recovery.RestorePoint{Time: at}, nil)
		if (err == nil) != can {
			t.Errorf("a restore to %s: %v", at, err)
		}
	}
}

// A segment of the archive that is lost after the newest backup is a gap, and another backup is made.
func TestLostSegment(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	for n := range 4 {
		commitStep(t, c, n+2)
		a.asSuperuser(t, db.ID, "select pg_catalog.pg_switch_wal()")
	}
	lost := commitStep(t, c, 9)
	a.awaitArchived(t, db.ID, lost)
	var all []string
	testenv.Within(t, time.Minute, "compressed segments", func() bool {
		all, _ = filepath.Glob(filepath.Join(a.cfg.DataDir, "backups", db.ID, "wal", "1", "*.zst"))
		return len(all) >= 4
	})
	a.abandon(t)
	if err := os.Remove(all[len(all)-2]); err != nil {
		t.Fatal(err)
	}
	a = a.reopen(t)
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "another backup", func() bool {
		backups := a.backups(t, db.ID)
		return len(backups) == 2 && backups[0].Status == model.BackupCompleted
	})
	a.awaitIdle(t)
	after := commitStep(t, c, 10)
	a.awaitArchived(t, db.ID, after)
	r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID)
	if err != nil || r.State != recovery.RecoveryAvailable || len(r.Archiving.Gaps) != 1 || !r.Archiving.Gaps[0].At.Before(lost) {
		t.Errorf("%s, gaps %+v, %v", r.State, r.Archiving.Gaps, err)
	}
	a.goTo(t, db.ID, recovery.RestorePoint{Time: after})
	if got := steps(t, c); got != "1 2 3 4 5 9 10" {
		t.Errorf("restored to %s", got)
	}
}

// lastSegment returns the last segment of the archive.
func (a *appliance) lastSegment(t *testing.T, database string) string {
	t.Helper()
	r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), database)
	if err != nil {
		t.Fatal(err)
	}
	return r.Archiving.LastSegment
}

func (a *appliance) serverLacks(t *testing.T, instance, segment string) (lacks bool) {
	t.Helper()
	conn, err := a.Databases.Instances.Connect(t.Context(), instance, databases.Maintenance)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	err = conn.QueryRow(t.Context(), "select not exists (select from pg_catalog.pg_ls_waldir() where name = $1)", segment).Scan(&lacks)
	if err != nil {
		t.Fatal(err)
	}
	return lacks
}

// The base of a running backup may be deleted: the new backup is complete.
func TestDeleteTheBaseOfABackup(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select n, repeat(md5(n::text), 8) as text from generate_series(1, 100000) n")
	const rows = "select count(*) || ' ' || sum(hashtext(text)) from t"
	base := a.backUp(t, db.ID)
	run(t, c, "update t set text = text || 'x' where n % 100 = 0")
	want := answer[string](t, c, rows)
	b, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), db.ID)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Catch(t, time.Minute, "the beginning of the copy", func() bool {
		now, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, b.ID)
		return err == nil && now.Status != model.BackupPending
	})
	if err := a.Recovery.BackupDelete(a.call(model.ActionBackupDelete), db.ID, base.ID); err != nil {
		t.Fatalf("delete of the base: %v", err)
	}
	a.awaitIdle(t)
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Recovery.CollectBackups(t.Context(), db.ID)
	run(t, c, "truncate t")
	a.restore(t, db.ID, b.ID)
	if got := answer[string](t, c, rows); got != want {
		t.Errorf("restored %s, not %s", got, want)
	}
}

// If the appliance stops before the backup that must follow a restore or a gap, the next start makes it.
func TestOwedBackup(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select 1 as n")
	b := a.backUp(t, db.ID)
	a.restore(t, db.ID, b.ID)
	a.abandon(t)
	a = a.reopen(t)
	testenv.Within(t, time.Minute, "a backup of the restored data", func() bool {
		all := a.backups(t, db.ID)
		return all[0].Status == model.BackupCompleted && all[0].Generation == 2
	})
	a.awaitIdle(t)
	before := a.backups(t, db.ID)
	a.abandon(t)
	a = a.reopen(t)
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	a.awaitIdle(t)
	if after := a.backups(t, db.ID); len(after) != len(before) {
		t.Errorf("a start that owed nothing made a backup: %+v", after)
	}
}
