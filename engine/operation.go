package engine

import (
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// beginOperation records that something long begins on a claimed database.
func (e *Engine) beginOperation(
	db model.Database, t model.OperationType, status model.DatabaseStatus, phase string,
) (model.DatabaseOperation, error) {
	op := e.newOperation(db, t, phase)
	err := e.meta.Update(func(tx *meta.Tx) error { return insertOperation(tx, op, status) })
	return op, err
}

func (e *Engine) newOperation(db model.Database, t model.OperationType, phase string) model.DatabaseOperation {
	return model.DatabaseOperation{
		ID: e.newID(model.ResourceOperation), Organization: db.Organization, Database: db.ID,
		Type: t, Status: model.OperationRunning, Phase: phase, StartedAt: e.clock(),
	}
}

func insertOperation(tx *meta.Tx, op model.DatabaseOperation, status model.DatabaseStatus) error {
	if err := tx.Operations().Insert(op); err != nil {
		return err
	}
	db, err := tx.Databases().Update(op.Database, func(d *model.Database) error {
		d.Operation, d.Status = op.ID, status
		if op.Type == model.OperationRestore || op.Type == model.OperationPITR {
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

// keptOperations is how many of a database's operations are remembered: more than
// are ever shown.
const keptOperations = 2 * recoveryEvents

// forgetOperations removes the oldest operations of a database, but for the last
// restore, of which the database itself tells.
func forgetOperations(tx *meta.Tx, db model.Database) error {
	all, err := allUnder(tx.Operations(), db.ID)
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

// endOperation records that the operation came to its end.
func (e *Engine) endOperation(op model.DatabaseOperation) error {
	end := func(tx *meta.Tx) error {
		_, err := e.releaseDatabase(tx, op, nil)
		return err
	}
	return e.recordLater(e.meta.Update(end), endOfOperation, end)
}

const endOfOperation = "the end of an operation"

// concludeOperation records how an operation ended that has left nothing to
// take back, and audits call. A database does not stay occupied because there
// was no room to say that it is free.
func (e *Engine) concludeOperation(call *model.Call, op model.DatabaseOperation, cause error) (model.Database, error) {
	var db model.Database
	err := e.meta.Update(func(tx *meta.Tx) (err error) {
		if db, err = e.releaseDatabase(tx, op, cause); err != nil {
			return err
		}
		return e.audit(tx, call, cause)
	})
	return db, e.recordLater(err, endOfOperation, func(tx *meta.Tx) error {
		_, err := e.releaseDatabase(tx, op, cause)
		return err
	})
}

// releaseDatabase closes the operation, and puts its database back to
// available.
func (e *Engine) releaseDatabase(tx *meta.Tx, op model.DatabaseOperation, cause error) (model.Database, error) {
	if err := e.closeOperation(tx, op.ID, cause); err != nil {
		return model.Database{}, err
	}
	return tx.Databases().Update(op.Database, func(d *model.Database) error {
		d.Operation, d.Status, d.StatusReason, d.UpdatedAt = "", model.DatabaseAvailable, "", e.clock()
		return nil
	})
}

func (e *Engine) closeOperation(tx *meta.Tx, id string, cause error) error {
	op, err := tx.Operations().Update(id, func(o *model.DatabaseOperation) error {
		now := e.clock()
		o.CompletedAt = &now
		if cause != nil {
			o.Status, o.Error = model.OperationFailed, operationMessage(cause)
			return nil
		}
		o.Status, o.Progress = model.OperationCompleted, 100
		return nil
	})
	if err == nil {
		endClaims(e.claims, op)
	}
	return err
}

// operationMessage is what a client is told of an operation that failed after
// its request was answered. What the database's own files and server had to
// say is shown: without it nobody knows what to do.
func operationMessage(err error) string {
	if public, ok := errors.AsType[*model.Error](err); ok {
		return public.Message
	}
	return err.Error()
}

// setPhase records how far an operation is, for people to see.
func (e *Engine) setPhase(id, phase string) error {
	return e.meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Operations().Update(id, func(o *model.DatabaseOperation) error {
			o.Phase = phase
			return nil
		})
		return err
	})
}

// record returns a database's record as it is now.
func (e *Engine) record(id string) (model.Database, error) {
	var db model.Database
	err := e.meta.View(func(tx *meta.Tx) (err error) {
		db, err = tx.Databases().Get(id)
		return err
	})
	return db, err
}
