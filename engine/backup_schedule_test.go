package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// ahead gives the configuration a clock that the test can advance.
func ahead(cfg *core.Config) *atomic.Int64 {
	var by atomic.Int64
	cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(by.Load())) }
	return &by
}

func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	cfg.BackupInterval = 24 * time.Hour
	a := startEngineOn(t, cfg)
	db, _ := a.createDatabase(t, "shop")
	expect := func(when string, want int) {
		t.Helper()
		a.Recovery.BackUpDue(t.Context())
		a.Recovery.BackUpDue(t.Context())
		a.awaitIdle(t) // the engine's own check may have come first
		if got := a.backups(t, db.ID); len(got) != want || slices.ContainsFunc(got, func(b model.Backup) bool {
			return b.Status != model.BackupCompleted || b.Type != model.BackupScheduled
		}) {
			t.Fatalf("%s: %+v, want %d", when, got, want)
		}
	}
	expect("at first", 0)
	by.Store(int64(2 * time.Minute))
	expect("after two minutes", 1)
	by.Store(int64(25 * time.Hour))
	expect("a day later", 2)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = a.reopen(t)
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
	expect("after a restart", 2)
	by.Store(int64(10 * 24 * time.Hour))
	expect("caught up after a long downtime", 3)
	a.awaitAudit(t, model.ActionBackupCreate, a.backups(t, db.ID)[0].ID)
}

// A database whose WAL does not arrive, so that its backup hangs, does not delay other organizations' backups.
func TestScheduledBackupsBesideStuckOne(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	cfg.BackupInterval = 24 * time.Hour
	a := startEngineOn(t, cfg)
	stuck, _ := a.createDatabase(t, "shop")
	other := a.inAnotherOrganization(t, "globex")
	db, _ := other.createDatabase(t, "shop")
	refuseWAL(t, a, stuck.ID)
	by.Store(int64(2 * time.Minute))
	a.Core.Background(a.Recovery.BackUpDue) // instead of waiting for the interval
	testenv.Within(t, time.Minute, "the backup of the other's", func() bool {
		all := a.backups(t, db.ID)
		return len(all) == 1 && all[0].Status == model.BackupCompleted
	})
	if all := a.backups(t, stuck.ID); len(all) != 1 || all[0].Status != model.BackupRunning {
		t.Errorf("the one that is stuck: %+v", all)
	}
}

// A backup whose WAL does not arrive fails at its time limit.
func TestBackupWithoutWAL(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), func(e *Engine) { e.Databases.Timeouts.WAL = 2 * time.Second })
	db, _ := a.createDatabase(t, "shop")
	refuseWAL(t, a, db.ID)
	b, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), db.ID)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "its end", func() bool { return a.backups(t, db.ID)[0].CompletedAt != nil })
	if b = a.backups(t, db.ID)[0]; b.Status != model.BackupFailed || b.Cut {
		t.Errorf("%+v", b)
	}
}

// refuseWAL makes the archive of a database refuse WAL once it is reopened.
func refuseWAL(t *testing.T, a *appliance, database string) {
	t.Helper()
	if err := a.Recovery.StopReceiving(database); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(a.Recovery.BackupDirectory(database), recovery.WALDirectory, "1")
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
}

// inAnotherOrganization returns the appliance as seen by a new organization.
func (a *appliance) inAnotherOrganization(t *testing.T, name string) *appliance {
	t.Helper()
	call := a.call(model.ActionOrganizationCreate)
	call.Actor, call.Key = model.Actor{Type: model.ActorOperator}, nil
	org, err := a.Access.OrganizationCreate(call, name)
	if err != nil {
		t.Fatal(err)
	}
	other := &appliance{Engine: a.Engine, cfg: a.cfg, org: org.ID}
	projects, err := other.Access.ProjectList(other.call(model.ActionProjectList), core.Filter{}, core.Page{})
	if err != nil || len(projects.Items) != 1 {
		t.Fatalf("projects: %v, %v", projects, err)
	}
	other.project = projects.Items[0].ID
	return other
}

// A user's request takes precedence over a scheduled backup, which is retried.
func TestScheduledBackupGivesWay(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	cfg.BackupInterval = 24 * time.Hour
	var told events
	cfg.Observe = told.add
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select n, md5(n::text) from generate_series(1, 100000) n")
	_, done, err := a.Recovery.BeginBackup(a.Core.System(model.ActionBackupCreate, a.org, databases.DatabaseResource(db.Database)), db.Database, model.BackupScheduled)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID); err != nil {
		t.Errorf("restart: %v", err)
	}
	<-done
	if b := a.backups(t, db.ID)[0]; b.Status == model.BackupFailed {
		t.Logf("it gave way: %s", b.Error)
		if !b.Cut {
			t.Error("giving way was recorded as a failure")
		}
		by.Store(int64(time.Hour))
		a.Recovery.BackUpDue(t.Context())
	}
	if b := a.backups(t, db.ID)[0]; b.Status != model.BackupCompleted {
		t.Errorf("the backup after it: %+v", b)
	}
	if failures := told.of(model.EventBackupFailed); len(failures) > 0 {
		t.Errorf("giving way was told as a failure: %+v", failures)
	}
	a.checkTidy(t)
}

// Whatever the interval is, all times within the retention can be restored: the backup before them stays.
func TestRetentionShorterThanInterval(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	cfg.BackupInterval, cfg.BackupRetention = day, 2*day
	a := startEngineOn(t, cfg)
	db, _ := a.createDatabase(t, "shop")
	first := a.backUp(t, db.ID)
	if err := a.update(t, db.ID, databases.Change{BackupEvery: new(31 * day)}); err != nil {
		t.Fatal(err)
	}
	by.Store(int64(31 * day))
	second := a.backUp(t, db.ID)
	for _, c := range []struct {
		after time.Duration
		want  []string
	}{
		{time.Hour, []string{second.ID, first.ID}},
		{2*day - time.Hour, []string{second.ID, first.ID}},
		{2*day + time.Hour, []string{second.ID}},
	} {
		by.Store(int64(31*day + c.after))
		believe(a.Engine)
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, b := range a.backups(t, db.ID) {
			left = append(left, b.ID)
		}
		same(t, fmt.Sprintf("backups %s after the second", c.after), left, c.want)
	}
}

// The newest completed backup and pinned ones stay; the others expire. A pinned backup cannot be deleted.
func TestExpiryAndPins(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	cfg.BackupRetention = 7 * 24 * time.Hour
	a := startEngineOn(t, cfg)
	db, _ := a.createDatabase(t, "shop")
	pinned, middle, newest := a.backUp(t, db.ID), a.backUp(t, db.ID), a.backUp(t, db.ID)
	set := func(id string, pinned bool, reason string) model.Backup {
		t.Helper()
		b, err := a.Recovery.BackupPin(a.call(model.ActionBackupPin), db.ID, id, pinned, reason)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := set(pinned.ID, true, "")
	if again := set(pinned.ID, true, "before the move"); again.Pin.Reason != "before the move" || !again.Pin.At.Equal(first.Pin.At) {
		t.Errorf("pinned again: %+v, first %+v", again.Pin, first.Pin)
	}
	if err := a.Recovery.BackupDelete(a.call(model.ActionBackupDelete), db.ID, pinned.ID); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("deleting a pinned backup: %v", err)
	}
	list, err := a.Recovery.BackupList(a.call(model.ActionBackupList), db.ID, recovery.BackupFilter{}, core.Page{})
	if err != nil || len(list.Items) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, b := range list.Items {
		if (b.ExpiresAt != nil) != (b.ID == middle.ID) {
			t.Errorf("%s expires at %v", b.ID, b.ExpiresAt)
		}
	}
	by.Store(int64(cfg.BackupRetention - time.Hour))
	believe(a.Engine)
	sweepAnd := func(want ...string) {
		t.Helper()
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, b := range a.backups(t, db.ID) {
			left = append(left, b.ID)
		}
		same(t, "backups", left, want)
	}
	sweepAnd(pinned.ID, middle.ID, newest.ID)
	by.Store(int64(cfg.BackupRetention + time.Hour))
	sweepAnd(pinned.ID, newest.ID)
	a.awaitAudit(t, model.ActionBackupExpire, middle.ID)
	// Unpinning needs no permission to delete: it deletes nothing, however old the backup is.
	at := a.Core.Clock()
	if b := set(pinned.ID, false, ""); b.ExpiresAt == nil || b.ExpiresAt.Before(at.Add(cfg.BackupRetention)) {
		t.Errorf("unpinned at %v, it expires at %v", at, b.ExpiresAt)
	}
	sweepAnd(pinned.ID, newest.ID)
	by.Add(int64(cfg.BackupRetention - time.Hour))
	believe(a.Engine)
	sweepAnd(pinned.ID, newest.ID)
	by.Add(int64(2 * time.Hour))
	sweepAnd(newest.ID)
	a.restore(t, db.ID, newest.ID) // the removed backups took nothing with them
	if _, err := a.Recovery.BackupPin(a.call(model.ActionBackupPin), db.ID, newest.ID, false, "why"); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("a reason for unpinning: %v", err)
	}
}
