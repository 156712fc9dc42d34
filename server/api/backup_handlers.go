package api

import (
	"context"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/server/api/wire"
)

type backupListInput struct {
	DatabaseInput
	PageInput
	CreatedInput
	Type   wire.BackupType   `query:"type" doc:"Only those of this type."`
	Status wire.BackupStatus `query:"status" doc:"Only those with this status."`
}

func (h *handlers) backupList(_ context.Context, call *model.Call, in *backupListInput) (core.List[wire.Backup], error) {
	page, err := h.engine.Recovery.BackupList(call, in.ID, recovery.BackupFilter{
		CreatedAfter: in.CreatedAfter, CreatedBefore: in.CreatedBefore, Type: model.BackupType(in.Type), Status: model.BackupStatus(in.Status),
	}, in.page())
	return convertList(page, NewBackup), err
}

func (h *handlers) backupCreate(_ context.Context, call *model.Call, in *databaseActInput) (wire.Backup, error) {
	b, err := h.engine.Recovery.BackupCreate(call, in.ID)
	return NewBackup(b), err
}

func (h *handlers) backupGet(_ context.Context, call *model.Call, in *BackupInput) (wire.Backup, error) {
	b, err := h.engine.Recovery.BackupGet(call, in.ID, in.BackupID)
	return NewBackup(b), err
}

func (h *handlers) backupDelete(_ context.Context, call *model.Call, in *BackupInput) (wire.DeletedBackup, error) {
	err := h.engine.Recovery.BackupDelete(call, in.ID, in.BackupID)
	return wire.DeletedBackup{ID: in.BackupID, Deleted: true}, err
}

type pinInput struct {
	BackupInput
	Body *wire.PinBackup
}

func (h *handlers) backupPin(_ context.Context, call *model.Call, in *pinInput) (wire.Backup, error) {
	body := wire.PinBackup{}
	if in.Body != nil {
		body = *in.Body
	}
	b, err := h.engine.Recovery.BackupPin(call, in.ID, in.BackupID, body.Pinned == nil || *body.Pinned, text(body.Reason))
	return NewBackup(b), err
}

// restoreInto returns the name of the requested new database, or nil for a restore in place, and rejects a name
// without mode new.
func restoreInto(mode *wire.RestoreMode, name *string) (*string, error) {
	if mode != nil && *mode == wire.RestoreNew {
		return new(text(name)), nil
	}
	if name != nil {
		return nil, model.Invalid("name", "only goes with the mode new; a restore in place keeps the name")
	}
	return nil, nil
}

type restoreInput struct {
	BackupInput
	Body *wire.RestoreBackup
}

func (h *handlers) backupRestore(_ context.Context, call *model.Call, in *restoreInput) (wire.Operation, error) {
	body := wire.RestoreBackup{}
	if in.Body != nil {
		body = *in.Body
	}
	into, err := restoreInto(body.Mode, body.Name)
	if err != nil {
		return wire.Operation{}, err
	}
	op, err := h.engine.Recovery.BackupRestore(call, in.ID, in.BackupID, into)
	return NewOperation(op), err
}

func (h *handlers) recoveryUndo(_ context.Context, call *model.Call, in *databaseActInput) (wire.Operation, error) {
	op, err := h.engine.Recovery.RecoveryUndo(call, in.ID)
	return NewOperation(op), err
}
