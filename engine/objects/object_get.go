package objects

import (
	"errors"
	"fmt"
	"net/url"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// ObjectPath is where objects are downloaded, outside the API.
const ObjectPath = "/objects/"

// ObjectGet returns an object's record.
func (s *Service) ObjectGet(call *model.Call, bucket, key string) (ObjectView, error) {
	if err := model.ValidateObjectKey("key", key); err != nil {
		return ObjectView{}, err
	}
	b, err := s.bucket(call, bucket)
	if err != nil {
		return ObjectView{}, err
	}
	call.Resource = ObjectResource(bucket, key)
	object, err := s.object(bucket, key)
	if err != nil {
		return ObjectView{}, err
	}
	return s.objectView(b, object), nil
}

// object looks where uploads are first, and then where they end up.
func (s *Service) object(bucket, key string) (model.Object, error) {
	if found, ok := s.recent.get(bucket, key); ok {
		if found.deleted {
			return model.Object{}, noObject(key)
		}
		return found.object, nil
	}
	object, err := s.core.Meta.CachedObject(bucket, key)
	if errors.Is(err, meta.ErrNotFound) {
		return object, noObject(key)
	}
	return object, err
}

func noObject(key string) error {
	return model.Errorf(model.CodeNotFound, "no object %q in this bucket", key)
}

func (s *Service) objectView(b model.Bucket, o model.Object) ObjectView {
	path := PathOf(o.Bucket, o.Key)
	view := ObjectView{Object: o, DownloadPath: s.core.Signer.SignedPath(path, ObjectSubject(o.Bucket, o.Key), s.core.Clock().Add(core.DownloadLife))}
	if b.Public {
		view.PublicPath = path
	}
	return view
}

// PathOf keeps the slashes of a key and escapes the rest.
func PathOf(bucket, key string) string {
	return (&url.URL{Path: ObjectPath + bucket + "/" + key}).EscapedPath()
}

// ObjectSubject names an object in a signature: the id of a bucket cannot hold
// the slash.
func ObjectSubject(bucket, key string) string { return "object " + bucket + "/" + key }

// Download is an object's record with its bytes. The caller closes Content.
type Download struct {
	model.Object
	Content *blobstore.Reader
	// Public says that anybody may download it.
	Public bool
}

// ObjectDownload opens an object for who has its signed URL, or for anybody
// when its bucket is public. The target is that of the request, as it came. A private bucket and a missing object look the
// same. With an error only Public is set.
func (s *Service) ObjectDownload(call *model.Call, bucket, key, target string) (Download, error) {
	call.Resource = ObjectResource(bucket, key)
	b, err := s.bucketOfAnybody(call, bucket)
	if err != nil {
		return Download{}, err
	}
	if !b.Public {
		if !s.core.Signer.Admits(PathOf(bucket, key), ObjectSubject(bucket, key), target, s.core.Clock()) {
			return Download{}, noObject(key)
		}
		call.Actor = model.DownloadLink()
	}
	download, err := s.openObject(bucket, key)
	download.Public = b.Public
	return download, err
}

// ObjectPreflight returns nil when pages of any origin may read what is in the
// bucket: when it is public.
func (s *Service) ObjectPreflight(call *model.Call, bucket string) error {
	call.Resource = model.Resource{Type: model.ResourceBucket, ID: bucket}
	b, err := s.bucketOfAnybody(call, bucket)
	if err == nil && !b.Public {
		err = noObject("")
	}
	return err
}

// bucketOfAnybody returns the bucket, for callers of no organization.
func (s *Service) bucketOfAnybody(call *model.Call, bucket string) (model.Bucket, error) {
	b, err := s.core.Meta.CachedBucket(bucket)
	if errors.Is(err, meta.ErrNotFound) {
		return b, noObject("")
	}
	call.Organization = b.Organization
	return b, err
}

// openObject opens the bytes of an object. One that is replaced, or moved by
// compaction, between the look-up and the opening is looked up again.
func (s *Service) openObject(bucket, key string) (Download, error) {
	for {
		object, err := s.object(bucket, key)
		if err != nil {
			return Download{}, err
		}
		content, err := s.core.Blobs.Open(blobstore.Ref(object.Blob))
		if err == nil {
			return Download{Object: object, Content: content}, nil
		}
		again, lookupErr := s.object(bucket, key)
		if lookupErr != nil {
			return Download{}, lookupErr
		}
		if again.Blob == object.Blob {
			return Download{}, s.unreadable(object, err)
		}
	}
}

// unreadable says which object it is whose bytes cannot be read.
func (s *Service) unreadable(object model.Object, err error) error {
	s.reportDamage(object, err)
	if isObjectDamage(err) {
		return damaged(err)
	}
	return fmt.Errorf("open object: %w", err)
}

// Unreadable notes why an object's bytes could not be read when they were to be
// sent, and returns what is said of it.
func (s *Service) Unreadable(object model.Object, err error) error { return s.unreadable(object, err) }
