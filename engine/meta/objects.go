package meta

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"holdfast/engine/model"
)

// The objects bucket holds a bucket for each bucket id, and in it one of the
// objects by key and one of the keys by version, which is by age.
const (
	objectsBucket  = "objects"
	objectKeys     = "keys"
	objectVersions = "versions"
)

// Object returns the object under key, or ErrNotFound.
func (tx *Tx) Object(bucket, key string) (model.Object, error) {
	var object model.Object
	keys, _ := tx.objectBuckets(bucket)
	if keys == nil {
		return object, ErrNotFound
	}
	data := keys.Get([]byte(key))
	if data == nil {
		return object, ErrNotFound
	}
	err := decodeRecord("objects/"+bucket, data, &object)
	return object, err
}

// PutObject stores object in place of what its key held, and keeps the
// bucket's counters and the blobs' rows in step. A bucket that is gone is
// ErrNotFound.
func (tx *Tx) PutObject(object model.Object) error {
	if err := tx.DeleteObject(object.Bucket, object.Key, object.LastModified); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err := tx.countObject(object, 1, object.LastModified); err != nil {
		return err
	}
	if err := tx.ClaimBlob(object.Blob); err != nil {
		return err
	}
	keys, versions, err := tx.makeObjectBuckets(object.Bucket)
	if err != nil {
		return err
	}
	data, err := encodeRecord(object)
	if err != nil {
		return err
	}
	if err := keys.Put([]byte(object.Key), data); err != nil {
		return fmt.Errorf("store object: %w", err)
	}
	if err := versions.Put([]byte(object.Version), []byte(object.Key)); err != nil {
		return fmt.Errorf("store object: %w", err)
	}
	return nil
}

// DeleteObject removes the object under key at the time at, or returns
// ErrNotFound.
func (tx *Tx) DeleteObject(bucket, key string, at time.Time) error {
	old, err := tx.Object(bucket, key)
	if err != nil {
		return err
	}
	keys, versions := tx.objectBuckets(bucket)
	if err := keys.Delete([]byte(key)); err != nil {
		return fmt.Errorf("remove object: %w", err)
	}
	if err := versions.Delete([]byte(old.Version)); err != nil {
		return fmt.Errorf("remove object: %w", err)
	}
	if err := tx.DiscardBlob(old.Blob); err != nil {
		return err
	}
	return tx.countObject(old, -1, at)
}

func (tx *Tx) countObject(object model.Object, by int64, at time.Time) error {
	_, err := tx.Buckets().Update(object.Bucket, func(b *model.Bucket) error {
		b.ObjectCount += by
		b.SizeBytes += by * object.SizeBytes
		b.UpdatedAt = at
		return nil
	})
	return err
}

// NewestObjects returns up to limit objects whose key begins with prefix,
// newest first, older than the version before ("" from the start), and
// whether there are more.
func (tx *Tx) NewestObjects(bucket, prefix, before string, limit int) ([]model.Object, bool, error) {
	_, versions := tx.objectBuckets(bucket)
	if versions == nil {
		return nil, false, nil
	}
	var objects []model.Object
	cursor := versions.Cursor()
	for version, key := lastBefore(cursor, []byte(before)); version != nil; version, key = cursor.Prev() {
		if !bytes.HasPrefix(key, []byte(prefix)) {
			continue
		}
		if len(objects) == limit {
			return objects, true, nil
		}
		object, err := tx.Object(bucket, string(key))
		if errors.Is(err, ErrNotFound) {
			err = &CorruptError{Where: fmt.Sprintf("objects/%s version %q", bucket, version)}
		}
		if err != nil {
			return nil, false, err
		}
		objects = append(objects, object)
	}
	return objects, false, nil
}

// RecountBucket counts a bucket's objects and bytes by walking them, to check
// its counters against.
func (tx *Tx) RecountBucket(bucket string) (count, size int64, err error) {
	keys, _ := tx.objectBuckets(bucket)
	if keys == nil {
		return 0, 0, nil
	}
	err = keys.ForEach(func(_, data []byte) error {
		var object model.Object
		if err := decodeRecord("objects/"+bucket, data, &object); err != nil {
			return err
		}
		count, size = count+1, size+object.SizeBytes
		return nil
	})
	return count, size, err
}

// objectBuckets returns where a bucket's objects are, nil when it never had
// any or was dropped.
func (tx *Tx) objectBuckets(bucket string) (keys, versions *bbolt.Bucket) {
	b := tx.bolt.Bucket([]byte(objectsBucket)).Bucket([]byte(bucket))
	if b == nil || tx.bolt.Bucket([]byte(droppedBucket)).Get([]byte(bucket)) != nil {
		return nil, nil
	}
	return b.Bucket([]byte(objectKeys)), b.Bucket([]byte(objectVersions))
}

func (tx *Tx) makeObjectBuckets(bucket string) (keys, versions *bbolt.Bucket, err error) {
	b, err := tx.bolt.Bucket([]byte(objectsBucket)).CreateBucketIfNotExists([]byte(bucket))
	if err != nil {
		return nil, nil, fmt.Errorf("make object bucket: %w", err)
	}
	if keys, err = b.CreateBucketIfNotExists([]byte(objectKeys)); err != nil {
		return nil, nil, fmt.Errorf("make object bucket: %w", err)
	}
	if versions, err = b.CreateBucketIfNotExists([]byte(objectVersions)); err != nil {
		return nil, nil, fmt.Errorf("make object bucket: %w", err)
	}
	return keys, versions, nil
}
