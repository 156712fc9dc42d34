package databases

import (
	"errors"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TestForgetOperations checks that the newest operations of a database are kept,
// and the last restore, however old it is.
func TestForgetOperations(t *testing.T) {
	t.Parallel()
	s := openRoom(t)
	db := s.insert(t, "shop")
	var ids []string
	begin := func(kind model.OperationType) {
		t.Helper()
		op, err := s.beginOperation(db, kind, model.DatabaseAvailable, "testing")
		ids = append(ids, op.ID)
		if err := errors.Join(err, s.EndOperation(op)); err != nil {
			t.Fatal(err)
		}
	}
	begin(model.OperationBackup)
	begin(model.OperationPITR)
	for range keptOperations + 10 {
		begin(model.OperationBackup)
	}
	kept := map[string]bool{}
	if err := s.core.Meta.View(func(tx *meta.Tx) error {
		all, err := core.AllUnder(tx.Operations(), db.ID)
		for _, op := range all {
			kept[op.ID] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(kept) != keptOperations+1 || kept[ids[0]] || !kept[ids[1]] || kept[ids[2]] || !kept[ids[len(ids)-1]] {
		t.Errorf("%d are kept; the first %t, the restore %t, the newest %t", len(kept), kept[ids[0]], kept[ids[1]], kept[ids[len(ids)-1]])
	}
}
