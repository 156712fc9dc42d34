package engine

import (
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// TestOperationsReserveSpace: restores and branches that begin together do not count on the same space, and give it back at their end.
func TestOperationsReserveSpace(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	other, _ := a.createDatabase(t, "other")
	b, second := a.backUp(t, db.ID), a.backUp(t, other.ID)
	free := max(b.SizeBytes, second.SizeBytes) + core.SpaceMargin // for one restore
	a.Core.Space.MeasureWith(func() (int64, error) { return free, nil })
	name := "restored"
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, &name)
	if err != nil {
		t.Fatal(err)
	}
	another := "another"
	if _, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), other.ID, second.ID, &another); !isNoSpace(err) {
		t.Errorf("a restore beside one that needs the space: %v", err)
	}
	if _, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), other.ID, second.ID, nil); !isNoSpace(err) {
		t.Errorf("a restore in place beside one that needs the space: %v", err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	testenv.Eventually(t, "the space", func() bool {
		return a.Core.Space.Reserve("", free-core.SpaceMargin, core.SpaceMargin, func(int64) error { return core.NoSpace(nil, "none") }) == nil
	})
	a.restore(t, other.ID, second.ID)
}

func isNoSpace(err error) bool {
	e, ok := err.(*model.Error)
	return ok && e.Reason == model.ReasonNoSpace
}
