package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// Bucket is a bucket's record.
type Bucket struct {
	ID          string    `json:"id"`
	Project     string    `json:"project" doc:"Id of its project."`
	Name        string    `json:"name"`
	Public      bool      `json:"public" doc:"Whether anybody may download its objects."`
	PublicURL   *string   `json:"public_url" doc:"What the public_url of its objects begins with."`
	ObjectCount int64     `json:"object_count"`
	SizeBytes   int64     `json:"size_bytes"`
	ExpireDays  *int      `json:"expire_after_days" doc:"After how many days objects are removed; null when they are kept."`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

func (h *handlers) newBucket(b model.Bucket) Bucket {
	view := Bucket{
		ID: b.ID, Project: b.Project, Name: b.Name, Public: b.Public, ObjectCount: b.ObjectCount, SizeBytes: b.SizeBytes,
		CreatedAt: utc(b.CreatedAt), UpdatedAt: utc(b.UpdatedAt),
	}
	if b.ExpireAfterDays > 0 {
		view.ExpireDays = &b.ExpireAfterDays
	}
	if b.Public {
		url := h.objectsURL + objects.ObjectPath + b.ID + "/"
		view.PublicURL = &url
	}
	return view
}

// Object is an object's record.
type Object struct {
	Key            string    `json:"key"`
	SizeBytes      int64     `json:"size_bytes"`
	ContentType    string    `json:"content_type"`
	ETag           string    `json:"etag" doc:"Names this version of the object."`
	ChecksumCRC32C string    `json:"checksum_crc32c" doc:"Base64 of the big-endian CRC-32C."`
	ChecksumSHA256 *string   `json:"checksum_sha256" doc:"Base64; null unless the uploader sent it."`
	LastModified   time.Time `json:"last_modified"`
	DownloadURL    *string   `json:"download_url" doc:"Signed; works for 15 minutes, without a key. Null for a key without the scope storage:read, which uploads need not have."`
	PublicURL      *string   `json:"public_url" doc:"Works as long as the bucket is public."`
}

func (h *handlers) newObject(o objects.ObjectView) Object {
	view := Object{
		Key: o.Key, SizeBytes: o.SizeBytes, ContentType: o.ContentType, ETag: `"` + o.Version + `"`,
		ChecksumCRC32C: base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, o.CRC32C)),
		ChecksumSHA256: orAbsent(o.ChecksumSHA256), LastModified: utc(o.LastModified),
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

func (h *handlers) bucketList(_ context.Context, call *model.Call, in *PageInput) (core.List[Bucket], error) {
	page, err := h.engine.Objects.BucketList(call, in.page())
	return convertList(page, h.newBucket), err
}

// CreateBucket is what a bucket is made of.
type CreateBucket struct {
	Project string `json:"project" maxLength:"64" doc:"Id of the project."`
	Name    string `json:"name" doc:"3 to 63 lower-case letters, digits, dots and hyphens. Unique in its project."`
	Public  *bool  `json:"public" required:"false" doc:"Whether anybody may download its objects; false when left out."`
}

// TransformSchema implements huma.SchemaTransformer.
func (CreateBucket) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	describe(s, "name", bucketName)
	return s
}

type createBucketInput struct {
	Body CreateBucket
}

func (h *handlers) bucketCreate(_ context.Context, call *model.Call, in *createBucketInput) (Bucket, error) {
	b, err := h.engine.Objects.BucketCreate(call, objects.NewBucket{
		Project: in.Body.Project, Name: in.Body.Name, Public: in.Body.Public != nil && *in.Body.Public,
	})
	return h.newBucket(b), err
}

func (h *handlers) bucketGet(_ context.Context, call *model.Call, in *BucketInput) (Bucket, error) {
	b, err := h.engine.Objects.BucketGet(call, in.ID)
	return h.newBucket(b), err
}

// UpdateBucket is what of a bucket is to change.
type UpdateBucket struct {
	Public     *bool        `json:"public" required:"false" doc:"Whether anybody may download its objects; unchanged when left out."`
	ExpireDays *WholeNumber `json:"expire_after_days" required:"false" minimum:"0" maximum:"36500" doc:"After how many days objects are removed; 0 keeps them; unchanged when left out. Setting or shortening it deletes data: the key must also hold the scope storage:delete, and its dangerous-operations toggle must be on."`
}

type updateBucketInput struct {
	BucketInput
	Body UpdateBucket
}

func (h *handlers) bucketUpdate(_ context.Context, call *model.Call, in *updateBucketInput) (Bucket, error) {
	b, err := h.engine.Objects.BucketUpdate(call, in.ID, objects.BucketChange{Public: in.Body.Public, ExpireAfterDays: (*int)(in.Body.ExpireDays)})
	return h.newBucket(b), err
}

type bucketDeleteInput struct {
	BucketInput
	Force bool `query:"force" doc:"Whether to delete the objects in it too."`
}

func (h *handlers) bucketDelete(_ context.Context, call *model.Call, in *bucketDeleteInput) (DeletedResource, error) {
	until, err := h.engine.Objects.BucketDelete(call, in.ID, in.Force)
	return DeletedResource{ID: in.ID, Deleted: true, Recoverable: h.recoverable(until)}, err
}
