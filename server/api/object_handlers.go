package api

import (
	"context"

	"holdfast/engine"
	"holdfast/engine/model"
)

type objectListInput struct {
	BucketInput
	PageInput
	Prefix string `query:"prefix" maxLength:"1024" doc:"What the keys begin with."`
}

func (h *handlers) objectList(_ context.Context, call *model.Call, in *objectListInput) (engine.List[Object], error) {
	page, err := h.engine.ObjectList(call, in.ID, in.Prefix, in.page())
	return convertList(page, h.newObject), err
}

type objectInput struct {
	BucketInput
	Key string `path:"key" doc:"Key of the object, slashes included; a slash and %2F are the same."`
}

func (h *handlers) objectGet(_ context.Context, call *model.Call, in *objectInput) (Object, error) {
	o, err := h.engine.ObjectGet(call, in.ID, in.Key)
	return h.newObject(o), err
}

// DeletedObject says that an object is gone.
type DeletedObject struct {
	Key     string `json:"key"`
	Deleted bool   `json:"deleted"`
}

func (h *handlers) objectDelete(ctx context.Context, call *model.Call, in *objectInput) (DeletedObject, error) {
	err := h.engine.ObjectDelete(ctx, call, in.ID, in.Key)
	return DeletedObject{Key: in.Key, Deleted: true}, err
}

// ObjectQueryInput names an object in the query.
type ObjectQueryInput struct {
	BucketInput
	Key string `query:"key" required:"true" doc:"Key of the object."`
}

func (h *handlers) objectDeleteByQuery(ctx context.Context, call *model.Call, in *ObjectQueryInput) (DeletedObject, error) {
	err := h.engine.ObjectDelete(ctx, call, in.ID, in.Key)
	return DeletedObject{Key: in.Key, Deleted: true}, err
}
