package api

import (
	"context"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewOperation returns the wire form of an operation.
func NewOperation(op model.DatabaseOperation) wire.Operation {
	view := wire.Operation{
		ID: op.ID, DatabaseID: op.Database, Type: wire.OperationType(op.Type), Status: wire.OperationStatus(op.Status),
		Phase: orAbsent(op.Phase), ProgressPercent: op.Progress,
		TargetTime: utcOrAbsent(op.TargetTime), TargetLSN: orAbsent(op.TargetLSN), BackupID: orAbsent(op.Backup), NewDatabaseID: orAbsent(op.NewDatabase), Error: orAbsent(op.Error),
		StartedAt: utc(op.StartedAt), CompletedAt: utcOrAbsent(op.CompletedAt),
	}
	if op.Upgrade != nil {
		view.Upgrade = newUpgrade(*op.Upgrade)
	}
	if op.CancelledBy != nil {
		by := NewActor(*op.CancelledBy)
		view.CancelledBy = &by
	}
	return view
}

type operationListInput struct {
	PageInput
	CreatedInput
	DatabaseID string               `query:"database_id" minLength:"1" maxLength:"64" doc:"Only those on the database with this id."`
	Type       wire.OperationType   `query:"type" doc:"Only those of this type."`
	Status     wire.OperationStatus `query:"status" doc:"Only those with this status."`
}

func (h *handlers) operationList(_ context.Context, call *model.Call, in *operationListInput) (core.List[wire.Operation], error) {
	page, err := h.engine.Databases.OperationList(call, databases.OperationFilter{
		Filter:   in.created(),
		Database: in.DatabaseID, Type: model.OperationType(in.Type), Status: model.OperationStatus(in.Status),
	}, in.page())
	return convertList(page, NewOperation), err
}

// OperationInput names an operation.
type OperationInput struct {
	OperationID string `path:"operationId" doc:"Id of the operation."`
}

type operationGetInput struct {
	OperationInput
	Wait string `query:"wait" pattern:"^([1-9]|[1-5][0-9]|60)s$" patternDescription:"a number of seconds from 1s to 60s" example:"30s" doc:"How long to wait for the end of the operation: 1s to 60s. Without it, the answer is immediate."`
}

func (h *handlers) operationGet(ctx context.Context, call *model.Call, in *operationGetInput) (wire.Operation, error) {
	if in.Wait == "" {
		op, err := h.engine.Databases.OperationGet(call, in.OperationID)
		return NewOperation(op), err
	}
	longest, err := time.ParseDuration(in.Wait)
	if err != nil {
		return wire.Operation{}, model.Invalid("wait", "must be a number of seconds from 1s to 60s")
	}
	op, err := h.engine.Databases.OperationWait(ctx, call, in.OperationID, longest)
	return NewOperation(op), err
}

type operationActInput struct {
	OperationInput
	Body *NoFields
}

func (h *handlers) operationCancel(ctx context.Context, call *model.Call, in *operationActInput) (wire.Operation, error) {
	op, err := h.engine.Databases.OperationCancel(ctx, call, in.OperationID)
	return NewOperation(op), err
}
