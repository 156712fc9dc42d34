package databases

import (
	"cmp"
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// beginOperation records the start of an operation on a claimed database.
func (s *Service) beginOperation(
	db model.Database, t model.OperationType, status model.DatabaseStatus, phase string,
) (model.DatabaseOperation, error) {
	op := s.NewOperation(db, t, phase)
	err := s.core.Meta.Update(func(tx *meta.Tx) error { return InsertOperation(tx, op, status) })
	return op, err
}

// NewOperation returns the record of an operation that begins now.
func (s *Service) NewOperation(db model.Database, t model.OperationType, phase string) model.DatabaseOperation {
	return model.DatabaseOperation{
		ID: s.core.NewID(model.ResourceOperation), Organization: db.Organization, Database: db.ID,
		Type: t, Status: model.OperationRunning, Phase: phase, StartedAt: s.core.Clock(),
	}
}

// InsertOperation inserts an operation, and sets it and the status in the record
// of its database.
func InsertOperation(tx *meta.Tx, op model.DatabaseOperation, status model.DatabaseStatus) error {
	if err := tx.Operations().Insert(op); err != nil {
		return err
	}
	db, err := tx.Databases().Update(op.Database, func(d *model.Database) error {
		d.Operation, d.Status = op.ID, status
		if op.Type.Replaces() {
			d.LastRestore = op.ID
		}
		d.Begun = max(d.Begun, op.Generation)
		return nil
	})
	if err != nil {
		return err
	}
	return forgetOperations(tx, db)
}

// keptOperations is how many operations of a database are kept, which is more than
// are ever shown.
const keptOperations = 2 * RecoveryEvents

// forgetOperations removes the oldest operations of a database, except the last
// restore, which the database's record refers to.
func forgetOperations(tx *meta.Tx, db model.Database) error {
	all, err := core.AllUnder(tx.Operations(), db.ID)
	if err != nil {
		return err
	}
	for _, op := range all[min(len(all), keptOperations):] {
		if op.CompletedAt == nil || op.ID == db.LastRestore {
			continue
		}
		if err := tx.Operations().Delete(op.ID); err != nil {
			return err
		}
	}
	return nil
}

// DropOperations removes the operations of a database except one.
func DropOperations(tx *meta.Tx, database, except string) error {
	all, err := core.AllUnder(tx.Operations(), database)
	for _, op := range all {
		if err == nil && op.ID != except {
			err = tx.Operations().Delete(op.ID)
		}
	}
	return err
}

// EndOperation records that an operation completed.
func (s *Service) EndOperation(op model.DatabaseOperation) error {
	end := func(tx *meta.Tx) error {
		_, err := s.ReleaseDatabase(tx, op, nil)
		return err
	}
	return s.core.RecordLater(s.core.Meta.Update(end), endOfOperation, end)
}

const endOfOperation = "the end of an operation"

// ConcludeOperation records the result of an operation that needs no rollback, and
// audits call. On a full disk it records the result later, so that the database
// does not stay occupied.
func (s *Service) ConcludeOperation(call *model.Call, op model.DatabaseOperation, cause error) (model.Database, error) {
	var db model.Database
	err := s.core.Meta.Update(func(tx *meta.Tx) (err error) {
		if db, err = s.ReleaseDatabase(tx, op, cause); err != nil {
			return err
		}
		return s.core.Audit(tx, call, cause)
	})
	return db, s.core.RecordLater(err, endOfOperation, func(tx *meta.Tx) error {
		_, err := s.ReleaseDatabase(tx, op, cause)
		return err
	})
}

// ReleaseDatabase closes an operation and sets its database, or the database it
// created, to available, unless another operation has begun on it: after a full
// disk the end is recorded late.
func (s *Service) ReleaseDatabase(tx *meta.Tx, op model.DatabaseOperation, cause error) (model.Database, error) {
	if err := s.CloseOperation(tx, op.ID, cause); err != nil {
		return model.Database{}, err
	}
	return tx.Databases().Update(cmp.Or(op.NewDatabase, op.Database), func(d *model.Database) error {
		if d.Operation == op.ID {
			d.Operation, d.Status, d.StatusReason, d.UpdatedAt = "", model.DatabaseAvailable, "", s.core.Clock()
		}
		return nil
	})
}

// CloseOperation records the end of an operation, failed if cause is not nil, and
// ends its claims.
func (s *Service) CloseOperation(tx *meta.Tx, id string, cause error) error {
	op, err := tx.Operations().Update(id, func(o *model.DatabaseOperation) error {
		now := s.core.Clock()
		o.CompletedAt = &now
		if cause != nil {
			o.Status, o.Error = model.OperationFailed, OperationMessage(cause)
			if o.CancelledBy != nil {
				o.Status, o.Error = model.OperationCancelled, Cancelled(*o.CancelledBy).Message
			}
			return nil
		}
		o.Status, o.Progress = model.OperationCompleted, 100
		return nil
	})
	if err == nil && !op.Type.Beside() {
		endClaims(s.core.Claims, op)
	}
	return err
}

// OperationMessage returns the message a client sees for an operation that failed
// after its request was answered. It includes errors of the database's files and
// server, because without them a user cannot tell what to do.
func OperationMessage(err error) string {
	if public, ok := errors.AsType[*model.Error](err); ok {
		return public.Message
	}
	return err.Error()
}

// SetPhase records the phase of an operation, for display.
func (s *Service) SetPhase(id, phase string) error {
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Operations().Change(id, func(o *model.DatabaseOperation) { o.Phase = phase })
	})
}

// BeginSwitching records that a restore switches to its data and can no longer be
// cancelled. It fails if the restore was cancelled.
func (s *Service) BeginSwitching(id string) error {
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Operations().Update(id, func(o *model.DatabaseOperation) error {
			if o.CancelledBy != nil {
				return Cancelled(*o.CancelledBy)
			}
			o.Phase = model.PhaseSwitching
			return nil
		})
		return err
	})
}

// RecoveryEvents is how many events and operations are shown.
const RecoveryEvents = 100
