package engine

import (
	"context"
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// A change that an instance has to follow is recorded first, and audited when
// the instance has followed. If the appliance dies in between, the next start
// has the instance follow, and ends the change.

// beginChange records a change for the instance to follow.
func (e *Engine) beginChange(call *model.Call, id string, change func(*model.Database)) (model.Database, error) {
	unfinished := &model.Unfinished{Entry: *e.entry(call, nil), Once: call.Once}
	db, err := e.alter(id, func(d *model.Database) {
		unfinished.Settings = d.Settings
		change(d)
		d.Unfinished = unfinished
	})
	return db, noRoom(err)
}

// takeBack records that the instance could not follow.
func (e *Engine) takeBack(id string, undo func(*model.Database)) (model.Database, error) {
	return e.alter(id, func(d *model.Database) {
		undo(d)
		d.Unfinished = nil
	})
}

func (e *Engine) alter(id string, change func(*model.Database)) (model.Database, error) {
	var db model.Database
	err := e.meta.Update(func(tx *meta.Tx) (err error) {
		db, err = tx.Databases().Update(id, func(d *model.Database) error {
			change(d)
			return nil
		})
		return err
	})
	return db, err
}

// endChange records, and audits, that the instance has followed.
func (e *Engine) endChange(call *model.Call, id string) (model.Database, error) {
	var db model.Database
	err := e.change(call, func(tx *meta.Tx) (err error) {
		db, err = tx.Databases().Update(id, func(d *model.Database) error {
			d.Unfinished = nil
			return nil
		})
		return err
	})
	return db, err
}

// settleChange ends the change in which the appliance died, once the instance
// was started with what the record says. Settings with which it did not start
// are taken back.
func (e *Engine) settleChange(ctx context.Context, db model.Database, startErr error) error {
	change := db.Unfinished
	call := callOf(change.Entry)
	call.Once = change.Once
	if startErr == nil || call.Operation.Action != model.ActionDatabaseSettings {
		_, err := e.endChange(call, db.ID)
		return errors.Join(startErr, err)
	}
	db, err := e.takeBack(db.ID, func(d *model.Database) { d.Settings = change.Settings })
	if err != nil {
		return errors.Join(startErr, err)
	}
	e.Finish(call, badSettings(startErr))
	return e.applySettings(ctx, db)
}
