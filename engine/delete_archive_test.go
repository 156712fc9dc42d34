package engine

import (
	"testing"

	"holdfast/backup"
	"holdfast/engine/model"
)

// The archive of a deleted database has everything that was committed, also what was not received before its server stopped.
func TestDeletionArchivesTheRest(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	if err := a.Recovery.StopReceiving(db.ID); err != nil {
		t.Fatal(err)
	}
	commitStep(t, c, 2)
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatal(err)
	}
	end, err := backup.ReadShutdown(a.Databases.DataDirectory(db.ID, db.Generation))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := a.Recovery.WALArchive(db.ID)
	if err == nil {
		err = archive.Covers(db.Generation, end.Timeline, end.Checkpoint, end.Checkpoint+1)
	}
	if err != nil {
		t.Error(err)
	}
}
