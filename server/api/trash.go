package api

import (
	"context"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewTrashedDatabase returns the wire form of a deleted database.
func NewTrashedDatabase(db model.Database) wire.TrashedDatabase {
	view := wire.TrashedDatabase{ID: db.ID, Name: db.Name, Project: db.Project}
	if db.Trash != nil {
		view.DeletedAt, view.RecoverableUntil = utc(db.Trash.At), utc(db.Trash.Until)
	}
	return view
}

// NewTrashedBucket returns the wire form of a deleted bucket.
func NewTrashedBucket(b model.TrashedBucket) wire.TrashedBucket {
	return wire.TrashedBucket{
		ID: b.ID, Name: b.Name, Project: b.Project, ObjectCount: b.ObjectCount, SizeBytes: b.SizeBytes, DeletedAt: utc(b.DeletedAt),
	}
}

// NewTrashedObject returns the wire form of a deleted object.
func NewTrashedObject(o model.TrashedObject) wire.TrashedObject {
	return wire.TrashedObject{ID: o.Version, BucketID: o.Bucket, Key: o.Key, SizeBytes: o.SizeBytes, DeletedAt: utc(o.DeletedAt)}
}

type trashListInput struct{ PageInput }

// TrashInput names something in the trash.
type TrashInput struct {
	TrashID string `path:"trashId" doc:"Id in the trash."`
}

type trashActInput struct {
	TrashInput
	Body *NoFields
}

func (h *handlers) trashList(_ context.Context, call *model.Call, in *trashListInput) (core.List[wire.TrashedDatabase], error) {
	page, err := h.engine.Databases.TrashList(call, in.page())
	return convertList(page, NewTrashedDatabase), err
}

func (h *handlers) trashRestore(ctx context.Context, call *model.Call, in *trashActInput) (wire.NamedReference, error) {
	db, err := h.engine.Databases.TrashRestore(ctx, call, in.TrashID)
	return wire.NamedReference{ID: db.ID, Name: db.Name}, err
}

func (h *handlers) trashPurge(_ context.Context, call *model.Call, in *TrashInput) (wire.DeletedRecord, error) {
	return purged(in.TrashID, h.engine.Databases.TrashPurge(call, in.TrashID))
}

// purged returns the result of removing something from the trash.
func purged(id string, err error) (wire.DeletedRecord, error) {
	return wire.DeletedRecord{ID: id, Deleted: true}, err
}

func (h *handlers) trashBucketList(_ context.Context, call *model.Call, in *trashListInput) (core.List[wire.TrashedBucket], error) {
	page, err := h.engine.Objects.TrashBucketList(call, in.page())
	return convertList(page, NewTrashedBucket), err
}

func (h *handlers) trashBucketRestore(_ context.Context, call *model.Call, in *trashActInput) (wire.NamedReference, error) {
	b, err := h.engine.Objects.TrashBucketRestore(call, in.TrashID)
	return wire.NamedReference{ID: b.ID, Name: b.Name}, err
}

func (h *handlers) trashBucketPurge(_ context.Context, call *model.Call, in *TrashInput) (wire.DeletedRecord, error) {
	return purged(in.TrashID, h.engine.Objects.TrashBucketPurge(call, in.TrashID))
}

func (h *handlers) trashObjectList(_ context.Context, call *model.Call, in *trashListInput) (core.List[wire.TrashedObject], error) {
	page, err := h.engine.Objects.TrashObjectList(call, in.page())
	return convertList(page, NewTrashedObject), err
}

func (h *handlers) trashObjectRestore(_ context.Context, call *model.Call, in *trashActInput) (wire.NamedReference, error) {
	object, err := h.engine.Objects.TrashObjectRestore(call, in.TrashID)
	return wire.NamedReference{ID: in.TrashID, Name: object.Key}, err
}

func (h *handlers) trashObjectPurge(_ context.Context, call *model.Call, in *TrashInput) (wire.DeletedRecord, error) {
	return purged(in.TrashID, h.engine.Objects.TrashObjectPurge(call, in.TrashID))
}

func (h *handlers) trashEmpty(_ context.Context, call *model.Call, _ *nothingInput) (wire.EmptiedTrash, error) {
	call.Resource = organization(call)
	removed, err := h.engine.TrashEmpty(call)
	return wire.EmptiedTrash{Databases: removed.Databases, Buckets: removed.Buckets, Objects: removed.Objects}, err
}
