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

// ObjectList returns the objects of a bucket whose keys begin with prefix.
func (e *Engine) ObjectList(call *model.Call, bucket, prefix string, page Page) (List[ObjectView], error) {
	after, err := page.after()
	if err != nil {
		return List[ObjectView]{}, err
	}
	b, err := e.bucket(call, bucket)
	if err != nil {
		return List[ObjectView]{}, err
	}
	var list List[ObjectView]
	err = e.meta.View(func(tx *meta.Tx) error {
		objects, more, err := tx.NewestObjects(bucket, prefix, after, page.limit())
		views := make([]ObjectView, len(objects))
		for i, o := range objects {
			views[i] = e.objectView(b, o)
		}
		list = newList(views, more, func(v ObjectView) string { return v.Version })
		return err
	})
	return list, err
}

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

func (e *Engine) object(bucket, key string) (model.Object, error) {
	var object model.Object
	err := e.meta.View(func(tx *meta.Tx) (err error) {
		object, err = tx.Object(bucket, key)
		return err
	})
	if errors.Is(err, meta.ErrNotFound) {
		return object, noObject(key)
	}
	return object, err
}

func noObject(key string) error {
	return model.Errorf(model.CodeNotFound, "no object %q in this bucket", key)
}

func (e *Engine) objectView(b model.Bucket, o model.Object) ObjectView {
	view := ObjectView{Object: o, DownloadPath: e.signedPath(o.Bucket, o.Key)}
	if b.Public {
		view.PublicPath = objectPath(o.Bucket, o.Key)
	}
	return view
}

// objectPath keeps the slashes of a key and escapes the rest.
func objectPath(bucket, key string) string {
	return (&url.URL{Path: ObjectPath + bucket + "/" + key}).EscapedPath()
}

func (e *Engine) signedPath(bucket, key string) string {
	return e.signer.signedPath(objectPath(bucket, key), objectSubject(bucket, key), e.clock().Add(DownloadLife))
}

// objectSubject names an object in a signature: the id of a bucket cannot hold
// the slash.
func objectSubject(bucket, key string) string { return "object " + bucket + "/" + key }

// Download is an object's record with its bytes. The caller closes Content.
type Download struct {
	model.Object
	Content *blobstore.Reader
}

// ObjectDownload opens an object for who has its signed URL, or for anybody
// when its bucket is public. A private bucket and a missing object look the
// same.
func (e *Engine) ObjectDownload(call *model.Call, bucket, key, expires, signature string) (Download, error) {
	call.Resource = objectResource(bucket, key)
	var b model.Bucket
	if err := e.meta.View(func(tx *meta.Tx) (err error) {
		b, err = tx.Buckets().Get(bucket)
		return err
	}); err != nil {
		if errors.Is(err, meta.ErrNotFound) {
			return Download{}, noObject(key)
		}
		return Download{}, err
	}
	call.Organization = b.Organization
	if !b.Public && !e.signer.admits(objectSubject(bucket, key), expires, signature, e.clock()) {
		return Download{}, noObject(key)
	}
	return e.openObject(bucket, key)
}

// openObject opens the bytes of an object. One that is replaced between the
// look-up and the opening is looked up again.
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
		if lookupErr != nil || again.Blob == object.Blob {
			return Download{}, firstOf(lookupErr, fmt.Errorf("open object: %w", err))
		}
	}
}

func firstOf(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
