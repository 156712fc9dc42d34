package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// TestRecoveryTimeline: the timeline contains the events of the database's own data, each restore with the LSN at which
// the WAL continues. The archive's history survives restores.
func TestRecoveryTimeline(t *testing.T) {
	t.Parallel()
	a, db, c, b := startStepped(t)
	get := func() recovery.Recovery {
		t.Helper()
		r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, new("copy"))
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	a.awaitIdle(t)
	r := get()
	for _, event := range r.Timeline {
		if event.Type != "backup" {
			t.Errorf("a restore into another database is an event of its source: %+v", event)
		}
	}
	if !slices.ContainsFunc(r.Operations, func(o model.DatabaseOperation) bool { return o.ID == op.ID }) {
		t.Error("it is not among the source's operations")
	}
	a.asSuperuser(t, db.ID, fmt.Sprintf("select pg_catalog.pg_terminate_backend(%d)", a.receiverSession(t, db.ID)))
	testenv.Within(t, time.Minute, "a failure of the receiver", func() bool { return get().Archiving.Failures > 0 })
	at := commitStep(t, c, 2)
	a.asSuperuser(t, db.ID, "select pg_catalog.pg_switch_wal()")
	a.awaitArchived(t, db.ID, commitStep(t, c, 3))
	before := get()
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at})
	a.awaitIdle(t)
	a.undo(t, db.ID)
	a.awaitIdle(t)
	after := get()
	if after.Archiving.Failures < before.Archiving.Failures || after.Archiving.Segments < before.Archiving.Segments || after.Archiving.LastFailed.IsZero() {
		t.Errorf("of the archive was known %+v, and after a restore %+v", before.Archiving, after.Archiving)
	}
	var events []recovery.RecoveryEvent
	for _, event := range after.Timeline {
		if event.Type == "restore" || event.Type == "timeline_switch" {
			events = append(events, event)
		}
	}
	if len(events) != 4 {
		t.Fatalf("after a restore and its undo: %+v", events)
	}
	record, err := a.Databases.Record(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	fork := record.Served[0].LSN
	for _, event := range events {
		lsn, err := xlog.ParseLSN(event.LSN)
		if err != nil || lsn == 0 {
			t.Errorf("no position: %+v", event)
		}
		restored := event.LSN == fork
		if want := map[bool]int{true: 2, false: 1}[restored]; event.Timeline != want { // of the restore, and of the generation that the undo brought back
			t.Errorf("the timeline of %+v is not %d", event, want)
		}
	}
	if events[0].LSN != events[1].LSN || events[2].LSN != events[3].LSN || events[0].LSN == events[2].LSN {
		t.Errorf("events: %+v", events)
	}
}
