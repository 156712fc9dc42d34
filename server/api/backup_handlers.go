package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

type backupListInput struct {
	DatabaseInput
	PageInput
}

func (h *handlers) backupList(_ context.Context, call *model.Call, in *backupListInput) (core.List[Backup], error) {
	page, err := h.engine.Recovery.BackupList(call, in.ID, in.page())
	return convertList(page, NewBackup), err
}

type backupCreateInput struct {
	DatabaseInput
	Body *NoFields
}

func (h *handlers) backupCreate(_ context.Context, call *model.Call, in *backupCreateInput) (Backup, error) {
	b, err := h.engine.Recovery.BackupCreate(call, in.ID)
	return NewBackup(b), err
}

func (h *handlers) backupGet(_ context.Context, call *model.Call, in *BackupInput) (Backup, error) {
	b, err := h.engine.Recovery.BackupGet(call, in.ID, in.BackupID)
	return NewBackup(b), err
}

// DeletedBackup says that a backup is gone.
type DeletedBackup struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

func (h *handlers) backupDelete(_ context.Context, call *model.Call, in *BackupInput) (DeletedBackup, error) {
	err := h.engine.Recovery.BackupDelete(call, in.ID, in.BackupID)
	return DeletedBackup{ID: in.BackupID, Deleted: true}, err
}

// PinBackup keeps a backup from expiring, or no longer.
type PinBackup struct {
	Pinned *bool   `json:"pinned" required:"false" doc:"true when left out."`
	Reason *string `json:"reason" required:"false" maxLength:"500"`
}

// TransformSchema implements huma.SchemaTransformer.
func (PinBackup) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	describe(s, "", rule{"dependentSchemas": map[string]rule{"pinned": {
		"if": properties(map[string]rule{"pinned": {"const": false}}), "then": properties(map[string]rule{"reason": {"maxLength": 0}}),
	}}})
	return s
}

type pinInput struct {
	BackupInput
	Body *PinBackup
}

func (h *handlers) backupPin(_ context.Context, call *model.Call, in *pinInput) (Backup, error) {
	body := PinBackup{}
	if in.Body != nil {
		body = *in.Body
	}
	b, err := h.engine.Recovery.BackupPin(call, in.ID, in.BackupID, body.Pinned == nil || *body.Pinned, text(body.Reason))
	return NewBackup(b), err
}

// RestoreBackup is where a backup is restored to.
type RestoreBackup struct {
	Mode *RestoreMode `json:"mode" required:"false" doc:"in_place when left out."`
	Name *string      `json:"name" required:"false" maxLength:"63" doc:"Of the new database, with mode new."`
}

// TransformSchema implements huma.SchemaTransformer.
func (RestoreBackup) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	describe(s, "name", databaseName)
	describe(s, "", restoreName())
	return s
}

// isNew reports whether a new database is asked for, and checks that a name
// is given for nothing else.
func isNew(mode *RestoreMode, name *string) (bool, error) {
	if mode != nil && *mode == RestoreNew {
		return true, nil
	}
	if name != nil {
		return false, model.Invalid("name", "only goes with the mode new; a restore in place keeps the name")
	}
	return false, nil
}

type restoreInput struct {
	BackupInput
	Body *RestoreBackup
}

func (h *handlers) backupRestore(_ context.Context, call *model.Call, in *restoreInput) (Operation, error) {
	body := RestoreBackup{}
	if in.Body != nil {
		body = *in.Body
	}
	intoNew, err := isNew(body.Mode, body.Name)
	if err != nil {
		return Operation{}, err
	}
	var op model.DatabaseOperation
	if intoNew {
		op, err = h.engine.Recovery.BackupRestoreNew(call, in.ID, in.BackupID, text(body.Name))
	} else {
		op, err = h.engine.Recovery.BackupRestore(call, in.ID, in.BackupID)
	}
	return NewOperation(op), err
}

type undoInput struct {
	DatabaseInput
	Body *NoFields
}

func (h *handlers) recoveryUndo(_ context.Context, call *model.Call, in *undoInput) (Operation, error) {
	op, err := h.engine.Recovery.RecoveryUndo(call, in.ID)
	return NewOperation(op), err
}
