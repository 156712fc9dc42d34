package engine

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// A pending change keeps others out of its record, also those that need no server, until the sweep has ended it.
func TestChangeWhileAnotherIsPending(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	session := connect(t, c)
	a.beginChange(t, model.ActionDatabaseRotatePassword, db.ID, func(d *model.Database) {
		a.sealPasswords(d, model.NewSecret("the owner's new one"), model.NewSecret("the reader's new one"))
		d.PendingChange.Terminate = true
	})
	const day = 24 * time.Hour
	for name, change := range map[string]databases.Change{
		"retention": {BackupRetention: new(30 * day)},
		"limit":     {ConnectionLimit: new(3)},
		"name":      {Name: new("store")},
	} {
		if err := a.update(t, db.ID, change); model.CodeOf(err) != model.CodeConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.1"}); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("allow-list: %v", err)
	}
	if _, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, map[string]string{"work_mem": "9MB"}); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("settings: %v", err)
	}
	if now, err := a.Databases.Record(db.ID); err != nil || now.PendingChange == nil || !now.PendingChange.Terminate || now.BackupRetention != 0 {
		t.Errorf("%+v, %v", now, err)
	}
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.checkEnded(t, db.ID, model.ActionDatabaseRotatePassword, model.OutcomeSuccess)
	if err := session.Ping(t.Context()); err == nil {
		t.Error("the session goes on")
	}
	loginRefused(t, c)
	if err := a.update(t, db.ID, databases.Change{BackupRetention: new(30 * day)}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A change that was taken back, after the server had followed half-way, is not taken for what the tenant did by SQL, when
// the appliance dies before the server follows the record again.
func TestTakenBackChange(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	a.beginChange(t, model.ActionDatabaseRotatePassword, db.ID, func(d *model.Database) { d.PendingChange.TakenBack = true })
	if _, err := connect(t, c).Exec(t.Context(), "alter role app password 'of the rotation'"); err != nil {
		t.Fatal(err)
	}
	a.abandon(t)
	b := a.reopen(t)
	b.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	if now, err := b.Databases.Record(db.ID); err != nil || now.PendingChange != nil || now.OwnPassword != nil {
		t.Errorf("pending change %+v, own password %+v, %v", now.PendingChange, now.OwnPassword, err)
	}
	connect(t, c)
	if _, err := b.Databases.RotatePassword(t.Context(), b.call(model.ActionDatabaseRotatePassword), db.ID, false); err != nil {
		t.Error(err)
	}
}

// The sweep ends a pending rename, access rules included.
func TestPendingRename(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	a.beginChange(t, model.ActionDatabaseUpdate, db.ID, func(d *model.Database) { d.Name = "store" })
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.checkEnded(t, db.ID, model.ActionDatabaseUpdate, model.OutcomeSuccess)
	refused(t, c)
	connect(t, connectionDetails(t, a, db.ID))
}

// The sweep applies pending settings before it ends their change, and reverts those with which the server does not start.
func TestPendingSettings(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	for _, try := range []struct {
		settings map[string]string
		outcome  model.Outcome
	}{
		{map[string]string{"work_mem": "9MB"}, model.OutcomeSuccess},
		{map[string]string{"work_mem": "10MB", "shared_buffers": "100000GB"}, model.OutcomeError},
	} {
		a.beginChange(t, model.ActionDatabaseSettings, db.ID, func(d *model.Database) { d.Settings = try.settings })
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.checkEnded(t, db.ID, model.ActionDatabaseSettings, try.outcome)
		var workMem string
		if err := connect(t, c).QueryRow(t.Context(), "show work_mem").Scan(&workMem); err != nil || workMem != "9MB" {
			t.Errorf("work_mem is %s, %v", workMem, err)
		}
	}
}

// The next start ends a creation of an extension that was interrupted at the restart for its library. It reverts a library
// with which the server does not start, for which a setting stands here.
func TestPendingLibrary(t *testing.T) {
	t.Parallel()
	const name = "pg_cron"
	a := startEngine(t)
	good, _ := a.createDatabase(t, "shop")
	bad, _ := a.createDatabase(t, "store")
	for _, db := range []databases.View{good, bad} {
		a.beginChange(t, model.ActionExtensionSet, db.ID, func(d *model.Database) {
			d.Preload = []string{name}
			if db.ID == bad.ID {
				d.Settings = map[string]string{"shared_buffers": "100000GB"}
			}
		})
	}
	a.abandon(t)
	b := a.reopen(t)
	for _, try := range []struct {
		database databases.View
		preload  []string
	}{{good, []string{name}}, {bad, nil}} {
		b.awaitStatus(t, try.database.ID, model.DatabaseAvailable, time.Minute)
		b.checkEnded(t, try.database.ID, model.ActionExtensionSet, model.OutcomeError)
		if now, err := b.Databases.Record(try.database.ID); err != nil || !slices.Equal(now.Preload, try.preload) || len(now.Settings) > 0 {
			t.Errorf("%s loads %v with %v, %v", now.Name, now.Preload, now.Settings, err)
		}
	}
	if err := b.Databases.ExtensionDelete(t.Context(), b.call(model.ActionExtensionDelete), good.ID, name); err != nil {
		t.Error(err)
	}
}

// A rename that could not be made in time locks nobody out: the rules have the old name again, and the database is not
// available before the rest is undone.
func TestRenameOutOfTime(t *testing.T) {
	t.Parallel()
	first := startEngineOn(t, testConfig(t, newDataDir(t)))
	db, c := first.createDatabase(t, "shop")
	stuck := connect(t, c)
	pid := int(stuck.PgConn().PID())
	first.abandon(t)
	a := startEngineOn(t, first.cfg, func(e *Engine) {
		e.Databases.Timeouts = databases.Timeouts{Start: 5 * time.Second, Stop: 2 * time.Second, Sessions: time.Minute}
	})
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	a.awaitIdle(t)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	ended := make(chan error, 1)
	go func() { ended <- a.update(t, db.ID, databases.Change{Name: new("store")}) }()
	testenv.Eventually(t, "the record of the rename, with the properties before it", func() bool {
		now, err := a.Databases.Record(db.ID)
		return err == nil && now.Name == "store" && now.PendingChange != nil && now.PendingChange.Before != nil && now.PendingChange.Before.Name == "shop"
	})
	if err := <-ended; err == nil {
		t.Fatal("it was renamed beside a session that does not end")
	}
	if now, err := a.Databases.Record(db.ID); err != nil || now.Name != "shop" || now.PendingChange != nil {
		t.Errorf("%+v, %v", now, err)
	}
	if status, _ := a.status(t, db.ID); status == model.DatabaseAvailable {
		connect(t, c)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Error(err)
	}
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	connect(t, c)
}
