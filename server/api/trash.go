package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
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

// DeletedInput selects what is in the trash by when it was deleted.
type DeletedInput struct {
	DeletedAfter  time.Time `query:"deleted_after" doc:"Only what was deleted after this time."`
	DeletedBefore time.Time `query:"deleted_before" doc:"Only what was deleted before this time."`
}

// Resolve implements huma.Resolver. It rejects an end that is not after the beginning, so a given end is never the
// zero time, which means no end.
func (in *DeletedInput) Resolve(ctx huma.Context) []error {
	if ctx.Query("deleted_before") != "" && !in.DeletedBefore.After(in.DeletedAfter) {
		return []error{model.Invalid("deleted_before", "must be after deleted_after")}
	}
	return nil
}

type trashListInput struct {
	PageInput
	DeletedInput
	Project string `query:"project" minLength:"1" maxLength:"64" doc:"Only those of the project with this id."`
	Name    string `query:"name" minLength:"1" maxLength:"256" doc:"Only those with exactly this name."`
}

func (in *trashListInput) filter() core.Filter {
	return core.Filter{Project: in.Project, Name: in.Name, CreatedAfter: in.DeletedAfter, CreatedBefore: in.DeletedBefore}
}

type trashObjectListInput struct {
	PageInput
	DeletedInput
	BucketID string `query:"bucket_id" minLength:"1" maxLength:"64" doc:"Only those of the bucket with this id."`
	Prefix   string `query:"prefix" maxLength:"1024" doc:"Only those whose keys begin with this."`
}

// TrashInput names something in the trash.
type TrashInput struct {
	TrashID string `path:"trashId" doc:"Id in the trash."`
}

type trashActInput struct {
	TrashInput
	Body *NoFields
}

func (h *handlers) trashList(_ context.Context, call *model.Call, in *trashListInput) (core.List[wire.TrashedDatabase], error) {
	page, err := h.engine.Databases.TrashList(call, in.filter(), in.page())
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
	page, err := h.engine.Objects.TrashBucketList(call, in.filter(), in.page())
	return convertList(page, NewTrashedBucket), err
}

func (h *handlers) trashBucketRestore(ctx context.Context, call *model.Call, in *trashActInput) (wire.RestoredBucket, error) {
	b, err := h.engine.Objects.TrashBucketRestore(ctx, call, in.TrashID)
	return wire.RestoredBucket{ID: b.ID, Name: b.Name, ExpiryOff: b.ExpiryOff}, err
}

func (h *handlers) trashBucketPurge(_ context.Context, call *model.Call, in *TrashInput) (wire.DeletedRecord, error) {
	return purged(in.TrashID, h.engine.Objects.TrashBucketPurge(call, in.TrashID))
}

func (h *handlers) trashObjectList(_ context.Context, call *model.Call, in *trashObjectListInput) (core.List[wire.TrashedObject], error) {
	page, err := h.engine.Objects.TrashObjectList(call, objects.TrashFilter{
		Filter: core.Filter{CreatedAfter: in.DeletedAfter, CreatedBefore: in.DeletedBefore}, Bucket: in.BucketID, Prefix: in.Prefix,
	}, in.page())
	return convertList(page, NewTrashedObject), err
}

func (h *handlers) trashObjectRestore(ctx context.Context, call *model.Call, in *trashActInput) (wire.NamedReference, error) {
	object, err := h.engine.Objects.TrashObjectRestore(ctx, call, in.TrashID)
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
