package engine

import (
	"context"
	"errors"
	"fmt"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// A change that an instance has to follow is recorded first, and audited when
// the instance has followed. If the appliance dies in between, the next start
// has the instance follow, and ends the change.

// beginChange records a change for the instance to follow.
func (e *Engine) beginChange(call *model.Call, id string, change func(*model.Database)) (model.Database, error) {
	unfinished := &model.Unfinished{Entry: *e.entry(call, nil), Once: call.Once}
	db, err := e.alter(id, func(d *model.Database) {
		unfinished.Settings = d.Settings
		d.Unfinished = unfinished
		change(d)
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
			if call.Operation.Action == model.ActionAllowlistSet {
				d.AllowlistAppliedAt = e.clock()
			}
			return nil
		})
		return err
	})
	return db, err
}

// settleChange ends the change in which the appliance died, once the instance
// was started with what the record says. Settings with which it did not start
// are taken back; anything else waits until the database is in order, see late.go.
func (e *Engine) settleChange(ctx context.Context, db model.Database, startErr error) error {
	change := db.Unfinished
	call := callOf(change.Entry)
	call.Once = change.Once
	if startErr == nil {
		return e.carryOnChange(ctx, db, call)
	}
	if state, _, _ := e.instances.Status(db.ID); call.Operation.Action != model.ActionDatabaseSettings || state == postgres.StateRunning {
		return startErr
	}
	db, err := e.takeBack(db.ID, func(d *model.Database) { d.Settings = change.Settings })
	if err != nil {
		return errors.Join(startErr, err)
	}
	e.Finish(call, badSettings(startErr))
	return e.applySettings(ctx, db)
}

// carryOnChange ends a change that the instance has followed, but for the
// sessions that were open meanwhile.
func (e *Engine) carryOnChange(ctx context.Context, db model.Database, call *model.Call) error {
	ended, err := 0, error(nil)
	switch {
	case call.Operation.Action == model.ActionAllowlistSet:
		ended, err = e.endSessions(ctx, db, db.Allowlist...)
	case db.Unfinished.Terminate:
		ended, err = e.endSessions(ctx, db)
	}
	if err != nil {
		e.states.expectLate(db.ID)
		return err
	}
	if call.Operation.Action != model.ActionDatabaseSettings {
		call.Note("sessions_terminated", fmt.Sprint(ended))
	}
	_, err = e.endChange(call, db.ID)
	return err
}
