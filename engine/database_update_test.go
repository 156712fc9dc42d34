package engine

import (
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
)

func (a *appliance) update(t *testing.T, id string, change databases.Change) error {
	t.Helper()
	_, err := a.Databases.Update(t.Context(), a.call(model.ActionDatabaseUpdate), id, change)
	return err
}

// A database is renamed with its sessions ended, and restores of backups from before have the new name.
func TestDatabaseRename(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	a.createDatabase(t, "taken")
	run(t, c, "create table kept as select 1 as n")
	old := a.backUp(t, db.ID)
	open := connect(t, c)
	if err := a.update(t, db.ID, databases.Change{Name: new("taken"), ConnectionLimit: new(7)}); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := open.Ping(t.Context()); err != nil {
		t.Errorf("a refused name ended a session: %v", err)
	}
	if err := a.update(t, db.ID, databases.Change{Name: new("Store-2"), ConnectionLimit: new(3)}); err != nil {
		t.Fatal(err)
	}
	if err := open.Ping(t.Context()); err == nil {
		t.Error("a session survived the rename")
	}
	refused(t, c)
	now := connectionDetails(t, a, db.ID)
	if now.Database != "Store-2" || now.Password.Reveal() != c.Password.Reveal() {
		t.Errorf("the connection is to %s", now.Database)
	}
	check := func(when string) {
		t.Helper()
		if n := answer[int](t, now, "select n from kept"); n != 1 {
			t.Errorf("%s: read %d", when, n)
		}
		if limit := answer[int](t, now, "select rolconnlimit from pg_roles where rolname = current_user"); limit != 3 {
			t.Errorf("%s: %d connections", when, limit)
		}
	}
	check("renamed")
	a.restore(t, db.ID, old.ID)
	check("restored")
	op, err := a.Recovery.RecoveryUndo(a.call(model.ActionRecoveryUndo), db.ID)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	check("brought back")
	if err := a.update(t, db.ID, databases.Change{Name: new("shop"), ConnectionLimit: new(0)}); err != nil {
		t.Fatal(err)
	}
	if limit := answer[int](t, c, "select rolconnlimit from pg_roles where rolname = current_user"); limit < 10 {
		t.Errorf("by default, %d connections", limit)
	}
	entries, _, err := a.Core.AuditList(a.call(model.ActionAuditList), core.AuditFilter{Action: string(model.ActionDatabaseUpdate)}, 1, core.MaxLimit)
	if err != nil || len(entries) == 0 || entries[0].Details["name"] != "Store-2 → shop" || entries[0].Details["connection_limit"] != "3 → default" {
		t.Errorf("the audit log has %+v, %v", entries, err)
	}
	a.checkTidy(t)
}

// A database's own schedule, retention and window take the place of the appliance's.
func TestDatabaseSchedule(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	cfg.BackupInterval, cfg.BackupRetention = day, 7*day
	a := startEngineOn(t, cfg)
	db, _ := a.createDatabase(t, "shop")
	older := a.backUp(t, db.ID)
	newer := a.backUp(t, db.ID)
	window, err := model.NewMaintenanceWindow("maintenance_window", "sunday", "03:00", 60)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.update(t, db.ID, databases.Change{BackupEvery: new(2 * time.Hour), BackupRetention: new(30 * day)}); err != nil {
		t.Fatal(err)
	}
	rec, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID)
	if err != nil || rec.Interval != 2*time.Hour || rec.Retention != 30*day || rec.NextBackup.After(a.Core.Clock().Add(2*time.Hour)) {
		t.Errorf("%+v, %v", rec, err)
	}
	if err := a.update(t, db.ID, databases.Change{MaintenanceWindow: &window}); err != nil {
		t.Fatal(err)
	}
	if rec, err = a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID); err != nil || !window.Next(*rec.NextBackup).Equal(*rec.NextBackup) {
		t.Errorf("the next backup is at %v, %v", rec.NextBackup, err)
	}
	get := func() model.Backup {
		b, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, older.ID)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if b := get(); b.ExpiresAt == nil || !b.ExpiresAt.Equal(newer.CompletedAt.Add(30*day)) {
		t.Errorf("it expires at %v", b.ExpiresAt)
	}
	key := func(scopes ...model.Scope) *model.Call {
		call := a.call(model.ActionDatabaseUpdate)
		call.Key = &model.Key{ID: "key_test", Scopes: scopes}
		return call
	}
	shorter := databases.Change{BackupRetention: new(2 * day)}
	for want, call := range map[model.Code]*model.Call{
		model.CodeInsufficientScope:   key(model.ScopeDatabaseUpdate),
		model.CodeDangerousNotAllowed: key(model.ScopeDatabaseUpdate, model.ScopeBackupDelete),
	} {
		if _, err := a.Databases.Update(t.Context(), call, db.ID, shorter); model.CodeOf(err) != want {
			t.Errorf("a shorter retention: %v", err)
		}
	}
	longer := databases.Change{BackupRetention: new(31 * day)}
	if _, err := a.Databases.Update(t.Context(), key(model.ScopeDatabaseUpdate), db.ID, longer); err != nil {
		t.Errorf("a longer retention: %v", err)
	}
	if err := a.update(t, db.ID, databases.Change{BackupRetention: new(time.Duration(0)), BackupEvery: new(time.Duration(0)), MaintenanceWindow: &model.MaintenanceWindow{}}); err != nil {
		t.Fatal(err)
	}
	if b := get(); b.ExpiresAt == nil || !b.ExpiresAt.Equal(newer.CompletedAt.Add(7*day)) {
		t.Errorf("by default it expires at %v", b.ExpiresAt)
	}
	by.Store(int64(8 * day))
	believe(a.Engine)
	if err := a.update(t, db.ID, longer); err != nil {
		t.Fatal(err)
	}
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(a.backups(t, db.ID)) < 2 {
		t.Error("a backup expired that is kept longer")
	}
}

// A refused change of a database changes nothing.
func TestDatabaseUpdateRefused(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	other := a.elsewhere(t, "other")
	tag := db.Tag()
	for name, change := range map[string]databases.Change{
		"reserved name":    {Name: new("postgres"), ConnectionLimit: new(2)},
		"no such project":  {Project: new("proj_none"), Name: new("store")},
		"another's":        {Project: &other.project},
		"too many":         {ConnectionLimit: new(1000)},
		"negative":         {ConnectionLimit: new(-1)},
		"kept too shortly": {BackupRetention: new(time.Hour)},
		"without schedule": {BackupEvery: new(time.Hour)}, // the appliance makes no scheduled backups here
	} {
		if err := a.update(t, db.ID, change); err == nil || model.CodeOf(err) == model.CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := other.Databases.Update(t.Context(), other.call(model.ActionDatabaseUpdate), db.ID, databases.Change{Name: new("stolen")}); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("another organization: %v", err)
	}
	stale := a.call(model.ActionDatabaseUpdate)
	stale.IfMatch = []string{`"0123456789abcdef"`}
	if _, err := a.Databases.Update(t.Context(), stale, db.ID, databases.Change{Name: new("store")}); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("another state: %v", err)
	}
	stale = a.call(model.ActionDatabaseDelete)
	stale.IfMatch = []string{`"0123456789abcdef"`}
	if _, err := a.Databases.Delete(t.Context(), stale, db.ID); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("the deletion of another state: %v", err)
	}
	if record, err := a.Databases.Record(db.ID); err != nil || record.Tag() != tag || record.PendingChange != nil {
		t.Errorf("%+v, %v", record, err)
	}
	connect(t, c)
}

// The progress of a restart moves once the server has stopped.
func TestRestartProgress(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	ended := make(chan error, 1)
	go func() {
		_, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID)
		ended <- err
	}()
	seen := map[int]bool{}
	for {
		list, err := a.Databases.OperationList(a.call(model.ActionOperationList), databases.OperationFilter{Type: model.OperationRestart}, core.Page{})
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range list.Items {
			seen[op.Progress] = true
		}
		select {
		case err := <-ended:
			if err != nil || !seen[50] {
				t.Errorf("the progress was %v, %v", seen, err)
			}
			if n := a.Databases.Progress.Count(); n != 0 {
				t.Errorf("the progress of %d operations is kept", n)
			}
			return
		default:
		}
	}
}
