package engine

import (
	"context"
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TrashList returns the deleted databases of the call's organization that can
// still be brought back.
func (e *Engine) TrashList(call *model.Call) ([]model.Database, error) {
	deleted := []model.Database{}
	err := e.meta.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(db model.Database) error {
			if db.Trash != nil && db.Organization == call.Organization {
				deleted = append(deleted, db)
			}
			return nil
		})
	})
	return deleted, err
}

// TrashRestore brings a deleted database back, with its backups and its
// connection URL.
func (e *Engine) TrashRestore(ctx context.Context, call *model.Call, id string) (model.Database, error) {
	call.Resource = model.Resource{Type: model.ResourceDatabase, ID: id}
	release, err := e.claims.take(id, "another operation")
	if err != nil {
		return model.Database{}, err
	}
	defer release()
	var db model.Database
	err = e.change(call, func(tx *meta.Tx) error {
		found, err := tx.Databases().Get(id)
		if errors.Is(err, meta.ErrNotFound) || err == nil && !e.restorable(found, call.Organization) {
			return model.Errorf(model.CodeNotFound, "no database %q in the trash; `holdfast admin trash list` shows what is", id)
		}
		if err != nil {
			return err
		}
		return e.withinPlan(tx, call.Organization, func() error {
			db, err = tx.Databases().Update(id, func(d *model.Database) error {
				d.Trash, d.UpdatedAt = nil, e.clock()
				return nil
			})
			return nameTaken(err, model.ResourceDatabase, found.Name)
		})
	})
	if err != nil || !e.Started() {
		return db, err
	}
	return db, e.doesNotStart(e.startDatabase(ctx, db))
}

func (e *Engine) restorable(db model.Database, organization string) bool {
	return db.Trash != nil && db.Organization == organization && !e.trashIsOver(*db.Trash)
}

// trashIsOver reports whether a deleted database may be removed: its time is
// over, or its removal has begun.
func (e *Engine) trashIsOver(t model.Trash) bool {
	return !t.Until.After(t.At) || e.mayRemove(t.Until)
}

// TrashEmpty removes the deleted databases of the call's organization for
// good, and returns how many there were. Each has an audit entry of its own.
func (e *Engine) TrashEmpty(call *model.Call) (int, error) {
	deleted, err := e.TrashList(call)
	if err != nil {
		return 0, err
	}
	for i, db := range deleted {
		one := *call
		one.Resource = databaseResource(db)
		if err := e.purgeClaimed(&one, db); err != nil {
			return i, err
		}
	}
	if call.Audited = len(deleted) > 0; call.Audited {
		return len(deleted), nil
	}
	return 0, e.change(call, func(*meta.Tx) error { return nil })
}

func (e *Engine) purgeClaimed(call *model.Call, db model.Database) error {
	release, err := e.claims.take(db.ID, "the removal from the trash")
	if err != nil {
		return err
	}
	defer release()
	return e.purge(call, db)
}
