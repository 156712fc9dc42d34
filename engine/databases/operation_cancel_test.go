package databases

import (
	"context"
	"fmt"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// noImports knows no import.
type noImports struct{ Imports }

// Operation implements Imports.
func (noImports) Operation(*model.DatabaseOperation) {}

// TestRepeatedCancelWritesNothing cancels an operation twice while it runs: only the first
// one is recorded, and neither fails because too many requests wait.
func TestRepeatedCancelWritesNothing(t *testing.T) {
	t.Parallel()
	s := openRoom(t)
	s.Connect(nil, noImports{})
	op, err := s.beginOperation(s.insert(t, "shop"), model.OperationBackup, model.DatabaseAvailable, "testing")
	if err != nil {
		t.Fatal(err)
	}
	call := func(by string) *model.Call {
		return &model.Call{
			Operation: model.OperationFor(model.ActionOperationCancel), Actor: model.Actor{Type: model.ActorKey, ID: by, Name: by},
			Key: &model.Key{Scopes: model.Scopes()}, Organization: op.Organization,
		}
	}
	for i := range core.WatchersInAll {
		waiting := call(fmt.Sprint("key_", i))
		waiting.IP, waiting.Organization = fmt.Sprint("192.0.2.", i), fmt.Sprint("org_", i)
		release, err := s.core.Watchers.Watch(waiting)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	commits := func() uint64 {
		n, err := s.core.Meta.Commits()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	start := commits()
	for i, by := range []string{"first", "second"} {
		got, err := s.OperationCancel(context.Background(), call(by), op.ID)
		if err != nil || got.CancelledBy == nil || got.CancelledBy.ID != "first" || got.Status != model.OperationRunning {
			t.Fatalf("%s: %+v, %v", by, got, err)
		}
		if n := commits() - start; n != 1 {
			t.Errorf("%d commits after cancellation %d", n, i+1)
		}
	}
	if err := s.core.Meta.View(func(tx *meta.Tx) error {
		kept, err := tx.Operations().Get(op.ID)
		if kept.CancelledBy.ID != "first" {
			t.Errorf("cancelled by %s", kept.CancelledBy.ID)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
