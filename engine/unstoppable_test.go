package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/internal/testenv"
)

// unfindable makes the server of a database one that the appliance cannot find, and so cannot stop, until find is called.
func (a *appliance) unfindable(t *testing.T, id string) (next *appliance, find func()) {
	t.Helper()
	dir := a.Databases.DataDirectory(id, a.record(t, id).Generation)
	a.abandon(t)
	path := filepath.Join(dir, "postmaster.pid")
	t.Cleanup(func() {
		if err := postgres.StopOrphan(context.Background(), dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Rename(path, path+".kept"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	find = func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".kept", path); err != nil {
			t.Fatal(err)
		}
	}
	return a.reopen(t), find
}

// A database whose server may still run is neither deleted nor replaced: what the server acknowledges would be lost.
func TestServerThatMayStillRun(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	cfg.TrashRetention = 0
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	session := connect(t, c)
	b, find := a.unfindable(t, db.ID)
	record := b.record(t, db.ID)
	if err := b.Recovery.SwitchGeneration(t.Context(), record, model.DatabaseOperation{Database: db.ID, Generation: 2}); err == nil || b.record(t, db.ID).Generation != record.Generation {
		t.Errorf("the data were replaced: %v", err)
	}
	if err := b.Recovery.RevertSwitch(t.Context(), record); err != nil {
		t.Errorf("undo of what has not begun: %v", err)
	}
	if _, err := b.Databases.Delete(t.Context(), b.call(model.ActionDatabaseDelete), db.ID); err == nil {
		t.Error("the database was deleted")
	}
	if _, err := session.Exec(t.Context(), "create table t (n int)"); err != nil {
		t.Errorf("the server: %v", err)
	}
	if now := b.record(t, db.ID); now.Trash != nil {
		t.Errorf("trash: %+v", now.Trash)
	}
	if err := b.Databases.StopInstance(t.Context(), db.ID); err == nil {
		t.Error("the server seems to have been stopped")
	}
	find()
	if err := b.Databases.StopInstance(t.Context(), db.ID); err != nil {
		t.Error(err)
	}
	testenv.Within(t, time.Minute, "the end of the session", func() bool { return session.Ping(t.Context()) != nil })
}

// A deletion that failed is carried on with by the next request or the sweep, as one operation.
func TestFailedDeletionGoesOn(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	b, find := a.unfindable(t, db.ID)
	for range 2 {
		if _, err := b.Databases.Delete(t.Context(), b.call(model.ActionDatabaseDelete), db.ID); err == nil {
			t.Error("the database was deleted")
		}
	}
	if all := b.operations(t, db.ID); len(all) != 1 || all[0].Status != model.OperationRunning {
		t.Errorf("operations: %+v", all)
	}
	find()
	if err := b.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := b.record(t, db.ID); now.Trash == nil || now.Operation != "" || now.Status != model.DatabaseAvailable {
		t.Errorf("after the sweep: %+v", now)
	}
	if all := b.operations(t, db.ID); len(all) != 1 || all[0].Status != model.OperationCompleted {
		t.Errorf("operations: %+v", all)
	}
	if _, err := b.Databases.TrashRestore(t.Context(), b.call(model.ActionTrashRestore), db.ID); err != nil {
		t.Error(err)
	}
	b.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
}
