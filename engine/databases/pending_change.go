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
		pending.Settings, pending.OwnSettings, pending.Preload = d.Settings, d.OwnSettings, d.Preload
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

// takeBack undoes a pending change that the instance could not apply, or only half-way, and makes the instance follow the
// record again. The change stays pending until that is so: after a crash in between, what the instance has is not taken
// for what its tenant did. On a full disk that waits for space, and the database is not available until then.
func (s *Service) takeBack(ctx context.Context, id string, undo func(*model.Database)) error {
	revert := func(d *model.Database) {
		undo(d)
		if d.PendingChange != nil {
			change := *d.PendingChange
			change.TakenBack = true
			d.PendingChange = &change
		}
	}
	_, err := s.alter(id, revert)
	if err == nil {
		if s.restoreAccess(ctx, id) {
			err = s.forgetTakenBack(id)
		}
		return err
	}
	s.States.setAccessPending(id)
	if !core.IsDiskFull(err) {
		return err
	}
	s.takingBack.Store(id, true)
	return s.core.RecordLater(err, "that a change is taken back", func(tx *meta.Tx) error {
		tx.OnCommit(func() {
			s.States.setAccessPending(id)
			s.takingBack.Delete(id)
		})
		return tx.Databases().Change(id, revert)
	})
}

// forgetTakenBack records that the instance follows the record again.
func (s *Service) forgetTakenBack(id string) error {
	_, err := s.alter(id, func(d *model.Database) {
		if d.PendingChange != nil && d.PendingChange.TakenBack {
			d.PendingChange = nil
		}
	})
	return err
}

// isTakingBack reports whether a change waits for disk space to be undone.
func (s *Service) isTakingBack(id string) bool {
	_, waits := s.takingBack.Load(id)
	return waits
}

// endChange records and audits that the instance has applied the pending change.
func (s *Service) endChange(call *model.Call, id string) (db model.Database, err error) {
	err = s.core.Change(call, func(tx *meta.Tx) (err error) {
		db, err = s.recordEnd(tx, call, id)
		return err
	})
	return db, err
}

// concludeChange is endChange that succeeds for a change that is in force although the disk is too full to record its end:
// the record already has it, and its entry follows when there is space.
func (s *Service) concludeChange(call *model.Call, id string) (model.Database, error) {
	db, err := s.endChange(call, id)
	if err == nil || !core.IsDiskFull(err) {
		return db, err
	}
	later := *call
	call.Audited = true
	_ = s.endLate(err, id, func(tx *meta.Tx) error {
		if _, err := s.recordEnd(tx, &later, id); err != nil {
			return err
		}
		return s.core.Audit(tx, &later, nil)
	})
	if db, err = s.Record(id); err == nil {
		s.end(&db, call.Operation.Action)
	}
	return db, err
}

// endLate is core.RecordLater for the end of a change that is in force. Until it is recorded, the change is pending in the
// record alone, see inForce.
func (s *Service) endLate(err error, id string, end func(*meta.Tx) error) error {
	if core.IsDiskFull(err) {
		s.endsLate.Store(id, true)
	}
	return s.core.RecordLater(err, "the end of a change", func(tx *meta.Tx) error {
		tx.OnCommit(func() { s.endsLate.Delete(id) })
		if now, err := tx.Databases().Get(id); err != nil || now.PendingChange == nil {
			return err // it was ended otherwise
		}
		return end(tx)
	})
}

// inForce returns a record without the change that the instance has applied, if only a full disk keeps its end from being
// recorded: applied again, it would restart the server, or end sessions that have opened since.
func (s *Service) inForce(db model.Database) model.Database {
	if _, late := s.endsLate.Load(db.ID); late {
		db.PendingChange = nil
	}
	return db
}

func (s *Service) recordEnd(tx *meta.Tx, call *model.Call, id string) (model.Database, error) {
	return tx.Databases().Update(id, func(d *model.Database) error {
		s.end(d, call.Operation.Action)
		return nil
	})
}

// end marks the pending change of a record as applied.
func (s *Service) end(d *model.Database, change model.Action) {
	d.PendingChange = nil
	if change == model.ActionAllowlistSet {
		d.AllowlistAppliedAt = s.core.Clock()
	}
}

// recoverChange ends a change that was pending when the appliance died, after the
// instance was started with the record. Settings and libraries with which it did not
// start are reverted, and so is a rename that prepared transactions prevent: they can be ended
// in the database alone, under the name that clients know. Any other change stays pending until
// the roles are set, see pending_roles.go.
func (s *Service) recoverChange(ctx context.Context, db model.Database, startErr error) error {
	change := db.PendingChange
	call := core.CallOf(change.Entry)
	call.Idempotent = change.Idempotent
	if startErr == nil {
		return s.completeChange(ctx, db, call)
	}
	if change.Before != nil && !change.TakenBack && errors.Is(startErr, postgres.ErrPrepared) {
		if err := s.takeBack(ctx, db.ID, func(d *model.Database) { copyProperties(d, *change.Before) }); err != nil {
			return errors.Join(startErr, core.NameTaken(err, model.ResourceDatabase, change.Before.Name))
		}
		s.core.Finish(call, startErr)
		return nil
	}
	if state, _, _ := s.Instances.Status(db.ID); !isSettings(call.Operation.Action) || state == postgres.StateRunning {
		return startErr
	}
	db, err := s.revertChange(db.ID, func(d *model.Database) {
		d.Settings, d.OwnSettings = change.Settings, change.OwnSettings
		if loadsLibrary(call) {
			d.Preload = change.Preload
		}
	})
	if err != nil {
		return errors.Join(startErr, err)
	}
	refusal := badSettings(startErr)
	if loadsLibrary(call) {
		refusal = badLibrary(call.Details["extension"], startErr)
	}
	s.core.Finish(call, refusal)
	return s.applySettings(ctx, db)
}

// completeChange ends the sessions that a pending change excludes, and then ends
// the change.
func (s *Service) completeChange(ctx context.Context, db model.Database, call *model.Call) error {
	if db.PendingChange.TakenBack {
		return s.forgetTakenBack(db.ID)
	}
	if loadsLibrary(call) {
		return s.recoverPreload(call, db.ID)
	}
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
	_, err = s.concludeChange(call, db.ID)
	return err
}
