package engine

import (
	"errors"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TestForgetOperations: of a database's operations the newest are remembered, and
// the last restore, however long ago it was.
func TestForgetOperations(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	db := model.Database{ID: s.Core.NewID(model.ResourceDatabase), Organization: s.org, Project: s.project, Name: "shop", Status: model.DatabaseAvailable}
	if err := s.Core.Meta.Update(func(tx *meta.Tx) error { return tx.Databases().Insert(db) }); err != nil {
		t.Fatal(err)
	}
	var ids []string
	begin := func(kind model.OperationType) {
		t.Helper()
		op, err := s.Databases.BeginOperation(db, kind, model.DatabaseAvailable, "testing")
		ids = append(ids, op.ID)
		if err := errors.Join(err, s.Databases.EndOperation(op)); err != nil {
			t.Fatal(err)
		}
	}
	begin(model.OperationBackup)
	begin(model.OperationPITR)
	for range databases.KeptOperations + 10 {
		begin(model.OperationBackup)
	}
	kept := map[string]bool{}
	if err := s.Core.Meta.View(func(tx *meta.Tx) error {
		all, err := core.AllUnder(tx.Operations(), db.ID)
		for _, op := range all {
			kept[op.ID] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(kept) != databases.KeptOperations+1 || kept[ids[0]] || !kept[ids[1]] || kept[ids[2]] || !kept[ids[len(ids)-1]] {
		t.Errorf("%d are kept; the first %t, the restore %t, the newest %t", len(kept), kept[ids[0]], kept[ids[1]], kept[ids[len(ids)-1]])
	}
}
