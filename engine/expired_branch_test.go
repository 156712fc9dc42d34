package engine

import (
	"testing"
	"time"

	"holdfast/engine/model"
)

// An expired branch that stays because it has branches is maintained like every other database.
func TestExpiredBranchIsMaintained(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	kept, _ := a.createDatabase(t, "kept")
	child, _ := a.createDatabase(t, "child")
	past := a.Core.Clock().Add(-time.Hour)
	a.edit(t, child.ID, func(d *model.Database) { d.Parent = kept.ID })
	a.edit(t, kept.ID, func(d *model.Database) { d.Parent, d.ExpiresAt = "db_deleted", &past })
	a.beginChange(t, model.ActionDatabaseUpdate, kept.ID, func(d *model.Database) { d.ConnectionLimit = 7 })
	sweep := func() model.Database {
		t.Helper()
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		return a.record(t, kept.ID)
	}
	if now := sweep(); now.Trash != nil || now.PendingChange != nil {
		t.Errorf("trash %v, pending change %+v", now.Trash, now.PendingChange)
	}
	a.edit(t, kept.ID, func(d *model.Database) { d.Replaced = &model.Replaced{Generation: 9, ExpiresAt: past} })
	if now := sweep(); now.Replaced != nil {
		t.Errorf("replaced data stay: %+v", now.Replaced)
	}
}
