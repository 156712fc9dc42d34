package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"maps"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/api/wire"
)

func (h *handlers) newBucket(b model.Bucket) wire.Bucket {
	view := wire.Bucket{
		ID: b.ID, Project: b.Project, Name: b.Name, Public: b.Public, ObjectCount: b.ObjectCount, SizeBytes: b.SizeBytes,
		CreatedAt: utc(b.CreatedAt), UpdatedAt: utc(b.UpdatedAt),
	}
	if b.ExpireAfterDays > 0 {
		view.ExpireAfterDays = &b.ExpireAfterDays
	}
	if b.Public {
		url := h.objectsURL + objects.ObjectPath + b.ID + "/"
		view.PublicURL = &url
	}
	return view
}

func (h *handlers) newObject(o objects.ObjectView) wire.Object {
	view := wire.Object{
		Key: o.Key, SizeBytes: o.SizeBytes, ContentType: o.ContentType, ETag: `"` + o.Version + `"`,
		ChecksumCRC32C: base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, o.CRC32C)),
		ChecksumSHA256: orAbsent(o.ChecksumSHA256), LastModified: utc(o.LastModified), Metadata: map[string]string{},
	}
	if o.Attributes != nil {
		maps.Copy(view.Metadata, o.Attributes.Metadata)
	}
	if o.DownloadPath != "" {
		url := h.objectsURL + o.DownloadPath
		view.DownloadURL = &url
	}
	if o.PublicPath != "" {
		url := h.objectsURL + o.PublicPath
		view.PublicURL = &url
	}
	return view
}

type bucketListInput struct {
	PageInput
	FilterInput
	Public bool `query:"public" doc:"Only those that are public, or only those that are not."`

	hasPublic bool
}

// Resolve implements huma.Resolver.
func (in *bucketListInput) Resolve(ctx huma.Context) []error {
	in.hasPublic = ctx.Query("public") != ""
	return in.CreatedInput.Resolve(ctx)
}

func (h *handlers) bucketList(_ context.Context, call *model.Call, in *bucketListInput) (core.List[wire.Bucket], error) {
	filter := objects.BucketFilter{Filter: in.filter()}
	if in.hasPublic {
		filter.Public = &in.Public
	}
	page, err := h.engine.Objects.BucketList(call, filter, in.page())
	return convertList(page, h.newBucket), err
}

type createBucketInput struct {
	Body wire.CreateBucket
}

func (h *handlers) bucketCreate(_ context.Context, call *model.Call, in *createBucketInput) (wire.Bucket, error) {
	b, err := h.engine.Objects.BucketCreate(call, objects.NewBucket{
		Project: in.Body.Project, Name: in.Body.Name, Public: in.Body.Public != nil && *in.Body.Public,
	})
	call.ETag = b.Tag()
	return h.newBucket(b), err
}

func (h *handlers) bucketGet(_ context.Context, call *model.Call, in *BucketInput) (wire.Bucket, error) {
	b, err := h.engine.Objects.BucketGet(call, in.ID)
	call.ETag = b.Tag()
	return h.newBucket(b), err
}

type updateBucketInput struct {
	BucketInput
	Body wire.UpdateBucket
}

func (h *handlers) bucketUpdate(_ context.Context, call *model.Call, in *updateBucketInput) (wire.Bucket, error) {
	b, err := h.engine.Objects.BucketUpdate(call, in.ID, objects.BucketChange{Public: in.Body.Public, ExpireAfterDays: (*int)(in.Body.ExpireAfterDays)})
	call.ETag = b.Tag()
	return h.newBucket(b), err
}

type bucketDeleteInput struct {
	BucketInput
	Force bool `query:"force" doc:"Whether to delete the objects in it too."`
}

func (h *handlers) bucketDelete(_ context.Context, call *model.Call, in *bucketDeleteInput) (wire.DeletedResource, error) {
	until, err := h.engine.Objects.BucketDelete(call, in.ID, in.Force)
	return wire.DeletedResource{ID: in.ID, Deleted: true, Recoverable: h.recoverable(until)}, err
}
