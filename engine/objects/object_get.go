package objects

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// ObjectPath is the URL path of downloads, outside the API.
const ObjectPath = "/objects/"

// ObjectGet returns an object's record.
func (s *Service) ObjectGet(call *model.Call, bucket, key string) (ObjectView, error) {
	return s.VersionGet(call, bucket, key, "")
}

// VersionGet is ObjectGet for the version with that id, "" for the current one.
func (s *Service) VersionGet(call *model.Call, bucket, key, version string) (ObjectView, error) {
	if err := model.ValidateObjectKey("key", key); err != nil {
		return ObjectView{}, err
	}
	b, err := s.bucket(call, bucket)
	if err != nil {
		return ObjectView{}, err
	}
	call.Resource = objectResource(bucket, key)
	object, err := s.version(bucket, key, version)
	if err != nil {
		return ObjectView{}, err
	}
	view := s.objectView(b, object)
	if version != "" {
		view.DownloadPath, view.PublicPath = s.linkTo(object, LinkOptions{Version: object.VersionID()}, core.DownloadLife), ""
	}
	if !call.Holds(model.ScopeStorageRead) { // it may change the object
		view.DownloadPath = ""
	}
	return view, nil
}

// object returns the current object.
func (s *Service) object(bucket, key string) (model.Object, error) {
	object, err := s.latest(bucket, key)
	if err == nil && object.DeleteMarker {
		err = &model.Error{Code: model.CodeNotFound, Message: noObject(key).Message, Err: &DeletedError{object}}
	}
	return object, err
}

func noObject(key string) *model.Error {
	return model.Errorf(model.CodeNotFound, "no object %q in this bucket", key)
}

func (s *Service) objectView(b model.Bucket, o model.Object) ObjectView {
	view := ObjectView{Object: o, DownloadPath: s.linkTo(o, LinkOptions{}, core.DownloadLife)}
	if b.PublicRights().Reads(o.Key) {
		view.PublicPath = pathOf(o.Bucket, o.Key)
	}
	return view
}

// pathOf returns the URL path of an object. It keeps the slashes of the key and
// escapes the rest.
func pathOf(bucket, key string) string {
	return (&url.URL{Path: ObjectPath + bucket + "/" + key}).EscapedPath()
}

// Download is an object's record and its bytes. The caller closes Content.
type Download struct {
	model.Object
	Content *blobstore.Reader
	// Public means that the download needs no signature.
	Public bool
	// Rules are what the bucket allows to the pages of other origins.
	Rules []model.CORSRule
	// Disposition is what the link says about saving the content, "" for what the object says.
	Disposition string
}

// ObjectDownload opens an object for a caller with its signed URL, or for any caller if it is public. The
// target is the request's, unchanged. A private object and a missing object give the same error. With an error only
// Public and Rules are set. Bytes that are away are fetched when they are read, for as long as ctx lasts.
func (s *Service) ObjectDownload(ctx context.Context, call *model.Call, bucket, key, target string) (Download, error) {
	admitted, link, err := s.admitDownload(call, bucket, key, target)
	if err != nil {
		return admitted, err
	}
	download, err := s.openObject(ctx, bucket, key, link.Version)
	download.Public, download.Rules, download.Disposition = admitted.Public, admitted.Rules, link.Disposition
	return download, err
}

// ObjectDownloadHead is ObjectDownload without the bytes.
func (s *Service) ObjectDownloadHead(call *model.Call, bucket, key, target string) (Download, error) {
	admitted, link, err := s.admitDownload(call, bucket, key, target)
	if err == nil {
		admitted.Disposition = link.Disposition
		admitted.Object, err = s.version(bucket, key, link.Version)
	}
	return admitted, err
}

// admitDownload checks that the caller may download an object, and returns who may else, and what a link says.
func (s *Service) admitDownload(call *model.Call, bucket, key, target string) (d Download, link LinkOptions, err error) {
	call.Resource = objectResource(bucket, key)
	b, err := s.anonymousBucket(call, bucket)
	if err != nil {
		return d, link, err
	}
	d.Rules = b.CORS
	path := pathOf(bucket, key)
	d.Public = b.PublicRights().Reads(key)
	link, options := linkOf(path, target)
	signed := s.core.Signer.Admits(path+options, linkSubject(bucket, key, options), target, s.core.Clock())
	switch {
	case d.Public && !signed && link.Version == "":
		return d, LinkOptions{}, nil
	case !signed:
		return d, link, noObject(key)
	case link.Maker != "":
		maker := *call
		if err := s.core.ActFor(&maker, b.Organization, link.Maker); err != nil || !maker.Holds(model.ScopeStorageRead) {
			return d, link, noObject(key)
		}
		call.Note("link_by", link.Maker)
	}
	if !d.Public {
		call.Actor = model.DownloadLink()
	}
	return d, link, nil
}

// ObjectPreflight returns whether everybody may read the object of a key, and what the bucket allows to the pages of
// other origins.
func (s *Service) ObjectPreflight(call *model.Call, bucket, key string) (public bool, rules []model.CORSRule, err error) {
	call.Resource = model.Resource{Type: model.ResourceBucket, ID: bucket}
	b, err := s.anonymousBucket(call, bucket)
	return b.PublicRights().Reads(key), b.CORS, err
}

// anonymousBucket returns the bucket for callers without an organization.
func (s *Service) anonymousBucket(call *model.Call, bucket string) (model.Bucket, error) {
	b, err := s.core.Meta.CachedBucket(bucket)
	if errors.Is(err, meta.ErrNotFound) {
		return b, noObject("")
	}
	call.Organization = b.Organization
	return b, err
}

// ObjectOpen opens the version of a key with that id, "" for the current one, for a caller who may read it.
func (s *Service) ObjectOpen(ctx context.Context, call *model.Call, bucket, key, version string) (Download, error) {
	if err := model.ValidateObjectKey("key", key); err != nil {
		return Download{}, err
	}
	if _, err := s.bucket(call, bucket); err != nil {
		return Download{}, err
	}
	call.Resource = objectResource(bucket, key)
	return s.openObject(ctx, bucket, key, version)
}

// openObject opens the bytes of a version. It looks the object up again if an upload replaces it or compaction moves it
// in between.
func (s *Service) openObject(ctx context.Context, bucket, key, version string) (Download, error) {
	for {
		object, err := s.version(bucket, key, version)
		if err != nil {
			return Download{}, err
		}
		content, err := s.core.Blobs.Open(ctx, blobstore.Ref(object.Blob))
		if err == nil {
			s.used(object)
			return Download{Object: object, Content: content}, nil
		}
		again, lookupErr := s.version(bucket, key, version)
		if lookupErr != nil {
			return Download{}, lookupErr
		}
		if again.Blob == object.Blob {
			return Download{}, s.Unreadable(object, err)
		}
	}
}

// Unreadable records why an object's bytes could not be read and returns the error for the client.
func (s *Service) Unreadable(object model.Object, err error) error {
	if errors.Is(err, context.Canceled) { // the client has gone, while the bytes were fetched
		return fmt.Errorf("open object: %w", err)
	}
	if errors.Is(err, ErrAway) && errors.Is(err, blobstore.ErrDamaged) { // the copy had the only bytes
		s.reportDamage(object, err)
		return away(err)
	}
	if errors.Is(err, ErrAway) {
		s.core.Log.Warn("an object cannot be fetched", "bucket", object.Bucket, "key", object.Key, "version", object.Version, "error", err)
		return away(err)
	}
	if s.readCopy(object, err) {
		s.core.Log.Warn("an object is damaged on this disk and is read from the off-site copy", "bucket", object.Bucket, "key", object.Key, "version", object.Version, "error", err)
		return away(fmt.Errorf("%w: its bytes on this disk are damaged", ErrAway))
	}
	s.reportDamage(object, err)
	if isObjectDamage(err) {
		return damaged(err)
	}
	return fmt.Errorf("open object: %w", err)
}
