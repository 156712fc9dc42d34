package engine

import (
	"os"
	"testing"

	"holdfast/engine/model"
)

// A read that comes too late does not create the directory of a purged database's backups again.
func TestArchiveOfAPurgedDatabase(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	cfg.TrashRetention = 0
	a := startEngineOn(t, cfg)
	db, _ := a.createDatabase(t, "shop")
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Recovery.WALArchive(db.ID); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("the WAL: %v", err)
	}
	if _, err := a.Recovery.Repository(db.ID); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("the backups: %v", err)
	}
	if _, err := os.Stat(a.Recovery.BackupDirectory(db.ID)); !os.IsNotExist(err) {
		t.Errorf("the directory of the backups: %v", err)
	}
}
