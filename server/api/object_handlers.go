package api

import (
	"context"
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/api/wire"
)

type objectListInput struct {
	BucketInput
	Limit     int              `query:"limit" minimum:"1" maximum:"100" default:"50" doc:"How many at most, folders included."`
	Cursor    string           `query:"cursor" maxLength:"1400" doc:"meta.next_cursor of the page before."`
	Prefix    string           `query:"prefix" maxLength:"1024" doc:"What the keys begin with."`
	Delimiter string           `query:"delimiter" minLength:"1" maxLength:"16" doc:"What ends a folder, usually a slash. With it the list is one level, in the order of keys."`
	Order     wire.ObjectOrder `query:"order" doc:"The order without a delimiter, newest when left out. With one it is key."`
}

func (h *handlers) objectList(_ context.Context, call *model.Call, in *objectListInput) (core.List[wire.Object], []string, error) {
	page := core.Page{Limit: in.Limit, Cursor: in.Cursor}
	if in.Delimiter != "" && in.Order == wire.ByNewest {
		return core.List[wire.Object]{}, nil, model.Invalid("order", "must be key with a delimiter, or left out")
	}
	if in.Delimiter != "" || in.Order == wire.ByKey {
		level, err := h.engine.Objects.ObjectFolder(call, in.ID, in.Prefix, in.Delimiter, page)
		return convertList(level.List, h.newObject), level.Prefixes, err
	}
	list, err := h.engine.Objects.ObjectList(call, in.ID, in.Prefix, page)
	return convertList(list, h.newObject), nil, err
}

// ObjectInput names an object in the path.
type ObjectInput struct {
	BucketInput
	Key string `path:"key" minLength:"1" maxLength:"1024" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]*$" patternDescription:"a key without control characters" doc:"Key of the object, slashes included; a slash and %2F are the same."`
}

// VersionInput names a version.
type VersionInput struct {
	Version string `query:"version_id" minLength:"1" maxLength:"64" doc:"The version; the current one when left out."`
}

// ObjectVersionInput names a version of an object in the path.
type ObjectVersionInput struct {
	ObjectInput
	VersionInput
}

func (h *handlers) objectGet(_ context.Context, call *model.Call, in *ObjectVersionInput) (wire.Object, error) {
	o, err := h.engine.Objects.VersionGet(call, in.ID, in.Key, in.Version)
	return h.newObject(o), notDeleted(err)
}

// notDeleted answers a request for a delete marker, which names no object, as one for a missing version.
func notDeleted(err error) error {
	if deleted, ok := errors.AsType[*objects.DeletedError](err); ok && model.CodeOf(err) == model.CodeValidation {
		return &model.Error{Code: model.CodeNotFound, Message: "the version " + deleted.Marker.VersionID() + " is a delete marker, which has no content", Err: err}
	}
	return err
}

type updateObjectInput struct {
	ObjectVersionInput
	Body wire.UpdateObject
}

func (h *handlers) objectUpdate(ctx context.Context, call *model.Call, in *updateObjectInput) (wire.Object, error) {
	change := objects.ObjectChange{
		Metadata: in.Body.Metadata, Tags: in.Body.Tags, CacheControl: in.Body.CacheControl, ContentDisposition: in.Body.Disposition,
		Hold: in.Body.LegalHold, Bypass: in.Body.BypassGovernance != nil && *in.Body.BypassGovernance,
	}
	if r, given := in.Body.Retention.Value(); given {
		change.Retention = &objects.Retention{}
		if r != nil {
			change.Retention = &objects.Retention{Mode: storedMode(r.Mode), Until: r.Until}
		}
	}
	if in.Body.ContentType != nil {
		_, canonical, err := mediaType(*in.Body.ContentType)
		if err != nil {
			return wire.Object{}, err
		}
		change.ContentType = &canonical
	}
	name := objects.VersionName{Bucket: in.ID, Key: in.Key, Version: in.Version}
	if err := h.engine.Objects.ObjectUpdate(call, name, change); err != nil {
		return wire.Object{}, notDeleted(err)
	}
	return h.objectGet(ctx, call, &in.ObjectVersionInput)
}

type copyObjectInput struct {
	BucketInput
	IfNoneMatch string `header:"If-None-Match" pattern:"^[*]$" patternDescription:"*, which refuses to replace an object" doc:"* refuses to replace an object."`
	Body        wire.CopyObject
}

func (h *handlers) objectCopy(ctx context.Context, call *model.Call, in *copyObjectInput) (wire.Object, error) {
	from := objects.VersionName{Bucket: in.ID, Key: in.Body.SourceKey, Version: text(in.Body.SourceVersion)}
	if in.Body.SourceBucket != nil {
		from.Bucket = *in.Body.SourceBucket
	}
	o, err := h.engine.Objects.ObjectCopy(ctx, call, objects.Copy{Source: from, Bucket: in.ID, Key: in.Body.Key, IfAbsent: in.IfNoneMatch != ""})
	return h.newObject(o), notDeleted(err)
}

type versionListInput struct {
	BucketInput
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"50" doc:"How many at most."`
	Cursor string `query:"cursor" maxLength:"1600" doc:"meta.next_cursor of the page before."`
	Prefix string `query:"prefix" maxLength:"1024" doc:"What the keys begin with."`
}

func (h *handlers) versionList(_ context.Context, call *model.Call, in *versionListInput) (core.List[wire.ObjectVersion], error) {
	list, err := h.engine.Objects.Versions(call, in.ID, in.Prefix, core.Page{Limit: in.Limit, Cursor: in.Cursor})
	return convertList(list, newVersion), err
}

func (h *handlers) objectDelete(ctx context.Context, call *model.Call, in *ObjectVersionInput) (wire.DeletedObject, error) {
	return h.objectDeleteByQuery(ctx, call, &objectQueryVersionInput{ObjectQueryInput{in.BucketInput, in.Key}, in.VersionInput})
}

// ObjectQueryInput names an object in the query string.
type ObjectQueryInput struct {
	BucketInput
	Key string `query:"key" required:"true" minLength:"1" maxLength:"1024" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]*$" patternDescription:"a key without control characters" doc:"Key of the object: at most 1024 bytes of UTF-8 without control characters, and no segment \".\" or \"..\" between its slashes."`
}

type objectQueryVersionInput struct {
	ObjectQueryInput
	VersionInput
}

func (h *handlers) objectDeleteByQuery(ctx context.Context, call *model.Call, in *objectQueryVersionInput) (wire.DeletedObject, error) {
	deleted, err := h.engine.Objects.ObjectDelete(ctx, call, objects.Deletion{Bucket: in.ID, Key: in.Key, Version: in.Version})
	return wire.DeletedObject{Key: in.Key, Deleted: true, Recoverable: h.recoverable(deleted.Until)}, err
}
