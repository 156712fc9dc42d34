package api

import (
	"context"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/api/wire"
)

type objectListInput struct {
	BucketInput
	Limit     int    `query:"limit" minimum:"1" maximum:"100" default:"50" doc:"How many at most, folders included."`
	Cursor    string `query:"cursor" maxLength:"1400" doc:"meta.next_cursor of the page before."`
	Prefix    string `query:"prefix" maxLength:"1024" doc:"What the keys begin with."`
	Delimiter string `query:"delimiter" minLength:"1" maxLength:"16" doc:"What ends a folder, usually a slash. With it the list is one level, in the order of keys."`
}

func (h *handlers) objectList(_ context.Context, call *model.Call, in *objectListInput) (core.List[wire.Object], []string, error) {
	page := core.Page{Limit: in.Limit, Cursor: in.Cursor}
	if in.Delimiter != "" {
		level, err := h.engine.Objects.ObjectFolder(call, in.ID, in.Prefix, in.Delimiter, page)
		return convertList(level.List, h.newObject), level.Prefixes, err
	}
	list, err := h.engine.Objects.ObjectList(call, in.ID, in.Prefix, page)
	return convertList(list, h.newObject), nil, err
}

type objectInput struct {
	BucketInput
	Key string `path:"key" minLength:"1" maxLength:"1024" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]*$" patternDescription:"a key without control characters" doc:"Key of the object, slashes included; a slash and %2F are the same."`
}

func (h *handlers) objectGet(_ context.Context, call *model.Call, in *objectInput) (wire.Object, error) {
	o, err := h.engine.Objects.ObjectGet(call, in.ID, in.Key)
	return h.newObject(o), err
}

func (h *handlers) objectDelete(ctx context.Context, call *model.Call, in *objectInput) (wire.DeletedObject, error) {
	return h.objectDeleteByQuery(ctx, call, &ObjectQueryInput{in.BucketInput, in.Key})
}

// ObjectQueryInput names an object in the query string.
type ObjectQueryInput struct {
	BucketInput
	Key string `query:"key" required:"true" minLength:"1" maxLength:"1024" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]*$" patternDescription:"a key without control characters" doc:"Key of the object: at most 1024 bytes of UTF-8 without control characters, and no segment \".\" or \"..\" between its slashes."`
}

func (h *handlers) objectDeleteByQuery(ctx context.Context, call *model.Call, in *ObjectQueryInput) (wire.DeletedObject, error) {
	deleted, err := h.engine.Objects.ObjectDelete(ctx, call, objects.Deletion{Bucket: in.ID, Key: in.Key})
	return wire.DeletedObject{Key: in.Key, Deleted: true, Recoverable: h.recoverable(deleted.Until)}, err
}
