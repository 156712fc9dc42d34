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

// Emptied is how much was removed from the trash.
type Emptied struct{ Databases, Buckets, Objects int }

// TrashEmpty removes what the call's organization has deleted for good, and
// returns how much that was, also with an error. Each database and bucket has an
// audit entry of its own.
func (e *Engine) TrashEmpty(call *model.Call) (removed Emptied, err error) {
	var errs [3]error
	removed.Databases, errs[0] = e.emptyDatabases(call)
	removed.Buckets, errs[1] = e.emptyBuckets(call)
	removed.Objects, errs[2] = e.emptyObjects(call)
	e.unlinkSoon()
	if err = errors.Join(errs[:]...); err != nil {
		return removed, err
	}
	if call.Audited = removed != (Emptied{}); call.Audited {
		return removed, nil
	}
	return removed, e.change(call, func(*meta.Tx) error { return nil })
}

func (e *Engine) emptyDatabases(call *model.Call) (int, error) {
	deleted, err := e.TrashList(call)
	if err != nil {
		return 0, err
	}
	for i, db := range deleted {
		if err := e.purgeClaimed(partOf(call, databaseResource(db)), db); err != nil {
			return i, err
		}
	}
	return len(deleted), nil
}

// partOf returns a call about one of the resources that call is about, to be
// audited by itself.
func partOf(call *model.Call, resource model.Resource) *model.Call {
	part := *call
	part.Resource, part.Details, part.Audited = resource, nil, false
	return &part
}

func (e *Engine) purgeClaimed(call *model.Call, db model.Database) error {
	release, err := e.claims.take(db.ID, "the removal from the trash")
	if err != nil {
		return err
	}
	defer release()
	return e.purge(call, db)
}

// purgeDeleted calls remove with the records of a table of the trash, some at a
// time, that have been there for as long as objects are kept.
func purgeDeleted[T any](ctx context.Context, e *Engine, table func(*meta.Tx) meta.Table[T], remove func([]T) error) error {
	if e.keepsAll() {
		return nil
	}
	bound := meta.DeletionKey(e.clock().Add(-e.cfg.ObjectTrashRetention))
	for ctx.Err() == nil {
		var due []T
		err := e.meta.View(func(tx *meta.Tx) (err error) {
			due, err = table(tx).Before(meta.ByDeletion, bound, expireBatch)
			return err
		})
		if len(due) == 0 { // but for what cannot be read
			return err
		}
		if err := remove(due); err != nil {
			return err
		}
		e.unlinkSoon()
	}
	return nil
}
