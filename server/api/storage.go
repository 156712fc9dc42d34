package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/api/wire"
)

func (h *handlers) newBucket(b model.Bucket) wire.Bucket {
	view := wire.Bucket{
		ID: b.ID, Project: b.Project, Name: b.Name, Public: b.Public, PublicPrefixes: append([]string{}, b.PublicPrefixes...), PublicListing: b.PublicListing,
		ObjectCount: b.ObjectCount, SizeBytes: b.SizeBytes,
		CreatedAt: utc(b.CreatedAt), UpdatedAt: utc(b.UpdatedAt), Versioning: wire.VersioningOff,
		NoncurrentCount: b.NoncurrentCount, NoncurrentBytes: b.NoncurrentBytes, CORS: convert(b.CORS, newCORSRule),
	}
	if b.Versioning != model.VersioningOff {
		view.Versioning = wire.Versioning(b.Versioning)
	}
	if b.Lock != nil {
		view.ObjectLock = &wire.BucketLock{Mode: orAbsent(lockMode(b.Lock.Mode)), Days: b.Lock.Days, Years: b.Lock.Years}
	}
	view.Website = h.newWebsite(b)
	view.ExpireAfterDays, view.ExpiryRules = orAbsent(b.Expiry.Days()), convert(b.Expiry, newExpiryRule)
	if may := b.PublicRights(); may.Read || len(may.Prefixes) > 0 {
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
		Tags: map[string]string{}, VersionID: o.VersionID(),
	}
	maps.Copy(view.Tags, o.Tags)
	view.Retention, view.LegalHold = newLock(o.Lock)
	if a := o.Attributes; a != nil {
		maps.Copy(view.Metadata, a.Metadata)
		view.CacheControl, view.Disposition = orAbsent(a.CacheControl), orAbsent(a.ContentDisposition)
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

func lockMode(m model.LockMode) wire.LockMode { return wire.LockMode(strings.ToLower(string(m))) }

func whole(n *wire.WholeNumber) int {
	if n == nil {
		return 0
	}
	return int(*n)
}

// storedMode is the inverse of lockMode.
func storedMode(m wire.LockMode) model.LockMode { return model.LockMode(strings.ToUpper(string(m))) }

func newLock(l *model.ObjectLock) (retention *wire.Retention, hold bool) {
	if l == nil {
		return nil, false
	}
	if l.Mode != "" {
		retention = &wire.Retention{Mode: lockMode(l.Mode), Until: utc(l.Until)}
	}
	return retention, l.Hold
}

func newVersion(v objects.ListedVersion) wire.ObjectVersion {
	view := wire.ObjectVersion{
		Key: v.Key, VersionID: v.VersionID(), Latest: v.Latest, DeleteMarker: v.DeleteMarker, SizeBytes: v.SizeBytes,
		ContentType: v.ContentType, ETag: `"` + v.Version + `"`, LastModified: utc(v.LastModified), NoncurrentAt: utcOrAbsent(&v.NoncurrentAt),
	}
	view.Retention, view.LegalHold = newLock(v.Lock)
	return view
}

func newCORSRule(r model.CORSRule) wire.CORSRule {
	methods := convert(r.Methods, func(m string) wire.CORSMethod { return wire.CORSMethod(m) })
	view := wire.CORSRule{
		Origins: append([]string{}, r.Origins...), Methods: methods, Headers: append([]string{}, r.Headers...),
		ExposeHeaders: append([]string{}, r.Expose...),
	}
	if r.MaxAgeSeconds != nil {
		view.MaxAgeSeconds = new(int(*r.MaxAgeSeconds))
	}
	return view
}

func newExpiryRule(r model.ExpiryRule) wire.ExpiryRule {
	return wire.ExpiryRule{Prefix: r.Prefix, Days: orAbsent(r.Days), NoncurrentDays: orAbsent(r.NoncurrentDays)}
}

// expiryRules returns the rules in a request, nil if there are none to set.
func expiryRules(in []wire.SetExpiryRule) *model.Expiry {
	if in == nil {
		return nil
	}
	rules := model.Expiry(convert(in, func(r wire.SetExpiryRule) model.ExpiryRule {
		return model.ExpiryRule{Prefix: r.Prefix, Days: whole(r.Days), NoncurrentDays: whole(r.NoncurrentDays)}
	}))
	return &rules
}

// corsRules returns the rules in a request, nil if there are none to set.
func corsRules(in []wire.SetCORSRule) *[]model.CORSRule {
	if in == nil {
		return nil
	}
	rules := convert(in, func(r wire.SetCORSRule) model.CORSRule {
		methods := convert(r.Methods, func(m wire.CORSMethod) string { return string(m) })
		rule := model.CORSRule{Origins: r.Origins, Methods: methods, Headers: r.Headers, Expose: r.ExposeHeaders}
		if r.MaxAgeSeconds != nil {
			rule.MaxAgeSeconds = new(int32(*r.MaxAgeSeconds))
		}
		return rule
	})
	return &rules
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
	change := objects.BucketChange{
		Public: in.Body.Public, PublicListing: in.Body.PublicListing, ExpireAfterDays: (*int)(in.Body.ExpireAfterDays), Expiry: expiryRules(in.Body.ExpiryRules), CORS: corsRules(in.Body.CORS),
	}
	if in.Body.PublicPrefixes != nil {
		change.PublicPrefixes = &in.Body.PublicPrefixes
	}
	if state := in.Body.Versioning; state != nil {
		change.Versioning = (*model.Versioning)(state)
		if *state == wire.VersioningOff {
			change.Versioning = new(model.VersioningOff)
		}
	}
	if lock := in.Body.ObjectLock; lock != nil {
		change.Lock = &model.BucketLock{Mode: storedMode(text(lock.Mode)), Days: whole(lock.Days), Years: whole(lock.Years)}
	}
	if site, given := in.Body.Website.Value(); given {
		if change.NoWebsite = site == nil; site != nil {
			change.Website = storedWebsite(*site)
		}
	}
	b, err := h.engine.Objects.BucketUpdate(call, in.ID, change)
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
