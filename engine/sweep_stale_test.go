package engine

import (
	"os"
	"testing"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TestSweepLooksAgain covers that a sweep, which may take long, removes nothing by what it read at its beginning.
func TestSweepLooksAgain(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	ctx, now := t.Context(), time.Now()

	change := func(change func(*model.Database)) (changed model.Database) {
		t.Helper()
		if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
			if err := tx.Databases().Change(db.ID, change); err != nil {
				return err
			}
			found, err := tx.Databases().Get(db.ID)
			changed = found
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return changed
	}

	read := change(func(d *model.Database) {
		d.Replaced = &model.Replaced{Generation: 98, At: now, ExpiresAt: now.Add(-time.Hour)}
	})
	change(func(d *model.Database) {
		d.Replaced = &model.Replaced{Generation: 99, At: now, ExpiresAt: now.Add(time.Hour)}
	})
	replaced := a.Databases.DataDirectory(db.ID, 99)
	if err := os.MkdirAll(replaced, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := a.sweepDatabase(ctx, read); err != nil {
		t.Errorf("sweep: %v", err)
	}
	if kept, err := a.Databases.Record(db.ID); err != nil || kept.Replaced == nil {
		t.Errorf("what the newest restore replaced is gone: %+v, %v", kept.Replaced, err)
	}
	if _, err := os.Stat(replaced); err != nil {
		t.Errorf("what the newest restore replaced: %v", err)
	}

	remove := func() {
		t.Helper()
		if _, err := a.Databases.Delete(ctx, a.call(model.ActionDatabaseDelete), db.ID); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	read = change(func(*model.Database) {})
	read.Trash = &model.Trash{At: now.Add(-2 * time.Hour), Until: now.Add(-time.Hour)}
	if _, err := a.Databases.TrashRestore(ctx, a.call(model.ActionTrashRestore), db.ID); err != nil {
		t.Fatal(err)
	}
	remove()
	_ = a.sweepDatabase(ctx, read) // which may say that it is in the trash anew
	if _, err := a.Databases.TrashRestore(ctx, a.call(model.ActionTrashRestore), db.ID); err != nil {
		t.Errorf("a database that was deleted again: %v", err)
	}
}
