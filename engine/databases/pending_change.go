package databases

import (
	"context"
	"errors"
	"fmt"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// A change of a record that the instance must apply is pending from its commit
// until the instance has applied it; only then is it audited. If the appliance dies
// in between, the next start applies the change and ends it.

// beginChange records a pending change.
func (s *Service) beginChange(call *model.Call, id string, change func(*model.Database)) (model.Database, error) {
	pending := &model.PendingChange{Entry: *s.core.Entry(call, nil), Idempotent: call.Idempotent}
	db, err := s.alter(id, func(d *model.Database) {
		pending.Settings, pending.OwnSettings = d.Settings, d.OwnSettings
		d.PendingChange = pending
		change(d)
	})
	return db, core.ExplainDiskFull(err)
}

// revertChange undoes a pending change that the instance could not apply.
func (s *Service) revertChange(id string, undo func(*model.Database)) (model.Database, error) {
	return s.alter(id, func(d *model.Database) {
		undo(d)
		d.PendingChange = nil
	})
}

// alter changes the record of a database.
func (s *Service) alter(id string, change func(*model.Database)) (model.Database, error) {
	return meta.Value(s.core.Meta.Update, func(tx *meta.Tx) (model.Database, error) {
		return tx.Databases().Update(id, func(d *model.Database) error {
			change(d)
			return nil
		})
	})
}

// endChange records and audits that the instance has applied the pending change.
func (s *Service) endChange(call *model.Call, id string) (model.Database, error) {
	change := func(change func(*meta.Tx) error) error { return s.core.Change(call, change) }
	return meta.Value(change, func(tx *meta.Tx) (model.Database, error) {
		return tx.Databases().Update(id, func(d *model.Database) error {
			d.PendingChange = nil
			if call.Operation.Action == model.ActionAllowlistSet {
				d.AllowlistAppliedAt = s.core.Clock()
			}
			return nil
		})
	})
}

// recoverChange ends a change that was pending when the appliance died, after the
// instance was started with the record. Settings with which it did not start are
// reverted; any other change stays pending until the roles are set, see
// pending_roles.go.
func (s *Service) recoverChange(ctx context.Context, db model.Database, startErr error) error {
	change := db.PendingChange
	call := core.CallOf(change.Entry)
	call.Idempotent = change.Idempotent
	if startErr == nil {
		return s.completeChange(ctx, db, call)
	}
	if state, _, _ := s.Instances.Status(db.ID); !isSettings(call.Operation.Action) || state == postgres.StateRunning {
		return startErr
	}
	db, err := s.revertChange(db.ID, func(d *model.Database) {
		d.Settings, d.OwnSettings = change.Settings, change.OwnSettings
	})
	if err != nil {
		return errors.Join(startErr, err)
	}
	s.core.Finish(call, badSettings(startErr))
	return s.applySettings(ctx, db)
}

// completeChange ends the sessions that a pending change excludes, and then ends
// the change.
func (s *Service) completeChange(ctx context.Context, db model.Database, call *model.Call) error {
	ended, err := 0, error(nil)
	switch {
	case call.Operation.Action == model.ActionAllowlistSet:
		ended, err = s.endSessions(ctx, db, db.Allowlist...)
	case db.PendingChange.Terminate:
		ended, err = s.endSessions(ctx, db)
	case db.PendingChange.EndRole != "":
		ended, err = s.endRole(ctx, db, db.PendingChange.EndRole)
	}
	if err != nil {
		s.States.setRolesPending(db.ID)
		return err
	}
	if a := call.Operation.Action; !isSettings(a) && a != model.ActionDatabaseUpdate {
		call.Note("sessions_terminated", fmt.Sprint(ended))
	}
	_, err = s.endChange(call, db.ID)
	return err
}
