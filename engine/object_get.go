package engine

import (
	"errors"
	"fmt"
	"net/url"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// ObjectPath is where objects are downloaded, outside the API.
const ObjectPath = "/objects/"

// ObjectGet returns an object's record.
func (e *Engine) ObjectGet(call *model.Call, bucket, key string) (ObjectView, error) {
	if err := model.ValidateObjectKey("key", key); err != nil {
		return ObjectView{}, err
	}
	b, err := e.bucket(call, bucket)
	if err != nil {
		return ObjectView{}, err
	}
	call.Resource = objectResource(bucket, key)
	object, err := e.object(bucket, key)
	if err != nil {
		return ObjectView{}, err
	}
	return e.objectView(b, object), nil
}

// object looks where uploads are first, and then where they end up.
func (e *Engine) object(bucket, key string) (model.Object, error) {
	if found, ok := e.recent.get(bucket, key); ok {
		if found.deleted {
			return model.Object{}, noObject(key)
		}
		return found.object, nil
	}
	object, err := e.meta.SharedObject(bucket, key)
	if errors.Is(err, meta.ErrNotFound) {
		return object, noObject(key)
	}
	return object, err
}

func noObject(key string) error {
	return model.Errorf(model.CodeNotFound, "no object %q in this bucket", key)
}

func (e *Engine) objectView(b model.Bucket, o model.Object) ObjectView {
	path := objectPath(o.Bucket, o.Key)
	view := ObjectView{Object: o, DownloadPath: e.signer.signedPath(path, objectSubject(o.Bucket, o.Key), e.clock().Add(DownloadLife))}
	if b.Public {
		view.PublicPath = path
	}
	return view
}

// objectPath keeps the slashes of a key and escapes the rest.
func objectPath(bucket, key string) string {
	return (&url.URL{Path: ObjectPath + bucket + "/" + key}).EscapedPath()
}

// objectSubject names an object in a signature: the id of a bucket cannot hold
// the slash.
func objectSubject(bucket, key string) string { return "object " + bucket + "/" + key }

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
func (e *Engine) ObjectDownload(call *model.Call, bucket, key, target string) (Download, error) {
	call.Resource = objectResource(bucket, key)
	b, err := e.bucketOfAnybody(call, bucket)
	if err != nil {
		return Download{}, err
	}
	if !b.Public {
		if !e.signer.admits(objectPath(bucket, key), objectSubject(bucket, key), target, e.clock()) {
			return Download{}, noObject(key)
		}
		call.Actor = model.DownloadLink()
	}
	download, err := e.openObject(bucket, key)
	download.Public = b.Public
	return download, err
}

// ObjectPreflight returns nil when pages of any origin may read what is in the
// bucket: when it is public.
func (e *Engine) ObjectPreflight(call *model.Call, bucket string) error {
	call.Resource = model.Resource{Type: model.ResourceBucket, ID: bucket}
	b, err := e.bucketOfAnybody(call, bucket)
	if err == nil && !b.Public {
		err = noObject("")
	}
	return err
}

// bucketOfAnybody returns the bucket, for callers of no organization.
func (e *Engine) bucketOfAnybody(call *model.Call, bucket string) (model.Bucket, error) {
	b, err := e.meta.SharedBucket(bucket)
	if errors.Is(err, meta.ErrNotFound) {
		return b, noObject("")
	}
	call.Organization = b.Organization
	return b, err
}

// openObject opens the bytes of an object. One that is replaced, or moved by
// compaction, between the look-up and the opening is looked up again.
func (e *Engine) openObject(bucket, key string) (Download, error) {
	for {
		object, err := e.object(bucket, key)
		if err != nil {
			return Download{}, err
		}
		content, err := e.blobs.Open(blobstore.Ref(object.Blob))
		if err == nil {
			return Download{Object: object, Content: content}, nil
		}
		again, lookupErr := e.object(bucket, key)
		if lookupErr != nil {
			return Download{}, lookupErr
		}
		if again.Blob == object.Blob {
			return Download{}, e.unreadable(object, err)
		}
	}
}

// unreadable says which object it is whose bytes cannot be read.
func (e *Engine) unreadable(object model.Object, err error) error {
	e.reportDamage(object, err)
	if isObjectDamage(err) {
		return damaged(err)
	}
	return fmt.Errorf("open object: %w", err)
}

// Unreadable notes why an object's bytes could not be read when they were to be
// sent, and returns what is said of it.
func (e *Engine) Unreadable(object model.Object, err error) error { return e.unreadable(object, err) }
