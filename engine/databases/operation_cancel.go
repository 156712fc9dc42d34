package databases

import (
	"cmp"
	"context"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// cancelWait is how long a cancellation waits for the end of the operation.
const cancelWait = 20 * time.Second

// OperationCancel cancels an operation and returns its record, usually of the ended
// operation. The caller needs what the operation needed to begin. The cancellation is
// recorded first, so an appliance that dies meanwhile rolls the operation back at its
// next start.
func (s *Service) OperationCancel(ctx context.Context, call *model.Call, id string) (model.DatabaseOperation, error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.DatabaseOperation{}, err
	}
	op, err := s.OperationGet(call, id)
	if err != nil {
		return op, err
	}
	if action := op.Type.BegunBy(); action != "" {
		if err := core.Permit(call, []model.Operation{model.OperationFor(action)}); err != nil {
			return op, err
		}
	}
	if op.Status == model.OperationCancelled {
		return op, nil
	}
	call.Note("type", string(op.Type))
	call.Note("database", op.Database)
	if op.CancelledBy == nil || op.Status.Final() { // a repeated cancellation has nothing to record
		if err := s.core.Change(call, func(tx *meta.Tx) error { return recordCancel(tx, id, call.Actor) }); err != nil {
			return op, err
		}
		s.core.Cancels.Signal(id, Cancelled(call.Actor))
	}
	op, err = s.OperationWait(ctx, call, id, cancelWait)
	if model.CodeOf(err) == model.CodeRateLimited { // the cancellation needs no wait
		return s.OperationGet(call, id)
	}
	return op, err
}

// recordCancel records who cancels an operation, the first one of several.
func recordCancel(tx *meta.Tx, id string, by model.Actor) error {
	op, err := tx.Operations().Update(id, func(o *model.DatabaseOperation) error {
		switch {
		case o.Status.Final():
			return model.Errorf(model.CodeConflict, "the operation is %s: there is nothing to cancel", o.Status)
		case o.Type.BegunBy() == "":
			return model.Errorf(model.CodeForbidden, "a %s cannot be cancelled", o.Type)
		case o.Phase == model.PhaseSwitching:
			return model.Errorf(model.CodeConflict, "the restore is switching to its data and can no longer be cancelled; undo it when it is done")
		case o.CancelledBy == nil:
			o.CancelledBy = &by
		}
		return nil
	})
	if err != nil {
		return err
	}
	if db, err := tx.Databases().Get(op.Database); err == nil && db.Rebuild && db.Operation == id {
		return model.Errorf(model.CodeForbidden, "the database has no other data: its restore cannot be cancelled")
	}
	return nil
}

// Cancelled returns the error of an operation that was cancelled.
func Cancelled(by model.Actor) *model.Error {
	return model.Errorf(model.CodeConflict, "cancelled by %s", cmp.Or(by.Name, by.ID, string(by.Type)))
}

// Cancelable makes an operation that begins to run cancelable by OperationCancel until
// ended is called. The context of one that was cancelled before has ended.
func (s *Service) Cancelable(ctx context.Context, id string) (_ context.Context, ended func()) {
	ctx, ended = s.core.Cancels.Add(ctx, id)
	op, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.DatabaseOperation, error) { return tx.Operations().Get(id) })
	if err == nil && op.CancelledBy != nil {
		s.core.Cancels.Signal(id, Cancelled(*op.CancelledBy))
	}
	return ctx, ended
}
