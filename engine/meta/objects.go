package meta

import (
	"errors"
	"fmt"
	"time"

	"holdfast/engine/model"
)

// The objects bucket contains a bucket for each bucket id, which contains the
// objects by key and the index by age. The value of an object is its version
// followed by its record, so that an object with a damaged record can still be
// removed from the index.
const (
	objectsBucket         = "objects"
	objectKeys            = "keys"
	objectPartitions      = "eras"
	objectPartitionStarts = "eras.starts"
)

func encodeObject(object model.Object) ([]byte, error) {
	if len(object.Version) != model.VersionLength {
		return nil, fmt.Errorf("the version %q has not %d bytes", object.Version, model.VersionLength)
	}
	record, err := encodeRecord(object)
	if err != nil {
		return nil, err
	}
	return append([]byte(object.Version), record...), nil
}

func decodeObject(bucket string, data []byte) (model.Object, error) {
	var object model.Object
	if len(data) < model.VersionLength {
		return object, &CorruptError{Where: "objects/" + bucket}
	}
	err := decodeRecord("objects/"+bucket, data[model.VersionLength:], &object)
	if err == nil && object.Version != string(data[:model.VersionLength]) {
		err = &CorruptError{Where: fmt.Sprintf("objects/%s %q", bucket, object.Key)}
	}
	return object, err
}

// Object returns the object under key, or ErrNotFound.
func (tx *Tx) Object(bucket, key string) (model.Object, error) {
	keys, _ := tx.objectBuckets(bucket)
	return objectIn(keys, bucket, key)
}

func objectIn(keys *boltBucket, bucket, key string) (model.Object, error) {
	if keys == nil {
		return model.Object{}, ErrNotFound
	}
	data := keys.Get([]byte(key))
	if data == nil {
		return model.Object{}, ErrNotFound
	}
	return decodeObject(bucket, data)
}

// PutObject stores object and returns the object it replaces, zero if there was
// none. It updates the bucket's counters and the rows of the bytes. If the bucket
// is gone, it returns ErrNotFound.
func (tx *Tx) PutObject(object model.Object) (old model.Object, err error) {
	old, err = tx.DeleteObject(object.Bucket, object.Key, object.LastModified)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return old, err
	}
	if err := tx.countObject(object, 1, object.LastModified); err != nil {
		return old, err
	}
	if err := tx.claimBytes(object); err != nil {
		return old, err
	}
	return old, tx.storeObject(object)
}

func (tx *Tx) storeObject(object model.Object) error {
	keys, ages, err := tx.makeObjectBuckets(object.Bucket)
	if err != nil {
		return err
	}
	if err := putObject(keys, object); err != nil {
		return err
	}
	return ages.add([]byte(object.Version), []byte(object.Key))
}

func putObject(keys *boltBucket, object model.Object) error {
	data, err := encodeObject(object)
	if err != nil {
		return err
	}
	if err := keys.Put([]byte(object.Key), data); err != nil {
		return fmt.Errorf("store object: %w", err)
	}
	return nil
}

// MoveObject records that the bytes of object are where it says, no longer in the
// blob from. It ignores an object that was replaced or removed meanwhile, but not
// one in the trash, alone or with its bucket.
func (tx *Tx) MoveObject(object model.Object, from string) error {
	old, err := tx.ObjectOfVersion(object.Bucket, object.Key, object.Version)
	if errors.Is(err, ErrNotFound) || err == nil && old.Blob != from {
		return nil
	}
	if err != nil {
		return err
	}
	if err := tx.releaseBytes(old); err != nil {
		return err
	}
	old.Blob, old.Segment = object.Blob, object.Segment
	if err := tx.claimBytes(old); err != nil {
		return err
	}
	_, err = tx.TrashedObjects().Update(old.Version, func(t *model.TrashedObject) error {
		t.Object = old
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return putObject(tx.keptObjects(object.Bucket).keys, old)
	}
	return err
}

// DeleteObject removes the object under key at time at and returns it, or
// ErrNotFound. It removes a damaged record too; otherwise nothing could replace it.
func (tx *Tx) DeleteObject(bucket, key string, at time.Time) (model.Object, error) {
	old, err := tx.Object(bucket, key)
	damaged := isDamaged(err)
	if err != nil && !damaged {
		return old, err
	}
	keys, ages := tx.objectBuckets(bucket)
	if damaged {
		data := keys.Get([]byte(key))
		old = model.Object{Bucket: bucket, Key: key, Version: string(data[:min(len(data), model.VersionLength)])}
	}
	if err := keys.Delete([]byte(key)); err != nil {
		return old, fmt.Errorf("remove object: %w", err)
	}
	if err := ages.remove([]byte(old.Version), []byte(key)); err != nil {
		return old, err
	}
	if !damaged { // otherwise the reference to its bytes is unreadable
		if err := tx.releaseBytes(old); err != nil {
			return old, err
		}
	}
	return old, tx.countObject(old, -1, at)
}

func isDamaged(err error) bool {
	_, damaged := errors.AsType[*CorruptError](err)
	return damaged
}

func (tx *Tx) countObject(object model.Object, by int64, at time.Time) error {
	if tx.batch != nil {
		return tx.tallyObject(object, by, at)
	}
	return tx.addToBucket(object.Bucket, by, by*object.SizeBytes, at)
}

func (tx *Tx) addToBucket(bucket string, objects, size int64, at time.Time) error {
	_, err := tx.Buckets().Update(bucket, func(b *model.Bucket) error {
		b.ObjectCount += objects
		b.SizeBytes += size
		b.UpdatedAt = at
		return nil
	})
	return err
}

// NextObjects returns up to limit objects of a bucket in key order, starting after
// the key after.
func (tx *Tx) NextObjects(bucket, after string, limit int) ([]model.Object, error) {
	keys, _ := tx.objectBuckets(bucket)
	if keys == nil {
		return nil, nil
	}
	var objects []model.Object
	cursor := keys.Cursor()
	for key, data := cursor.Seek([]byte(after)); key != nil && len(objects) < limit; key, data = cursor.Next() {
		if string(key) == after {
			continue
		}
		object, err := decodeObject(bucket, data)
		if err != nil {
			return objects, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// objectLocation is the location of a bucket's objects.
type objectLocation struct {
	keys *boltBucket
	ages *timePartitions
}

// objectBuckets returns the location of a bucket's objects, nil if it never had
// any or was deleted.
func (tx *Tx) objectBuckets(bucket string) (keys *boltBucket, ages *timePartitions) {
	if tx.batch == nil {
		location := tx.findObjects(bucket)
		return location.keys, location.ages
	}
	location, known := tx.batch.locations[bucket]
	if !known {
		if location = tx.findObjects(bucket); location.keys != nil {
			location.ages.keeping = true
			tx.batch.locations[bucket] = location
		}
	}
	return location.keys, location.ages
}

func (tx *Tx) findObjects(bucket string) (location objectLocation) {
	if tx.bolt.Bucket([]byte(trashedTable)).Get([]byte(bucket)) != nil {
		return location
	}
	return tx.keptObjects(bucket)
}

// keptObjects is findObjects including buckets in the trash.
func (tx *Tx) keptObjects(bucket string) (location objectLocation) {
	b := tx.bolt.Bucket([]byte(objectsBucket)).Bucket([]byte(bucket))
	if b == nil || tx.bolt.Bucket([]byte(droppedBucket)).Get([]byte(bucket)) != nil {
		return location
	}
	return objectLocation{b.Bucket([]byte(objectKeys)), &timePartitions{starts: b.Bucket([]byte(objectPartitionStarts)), members: b.Bucket([]byte(objectPartitions)), size: partitionSize}}
}

func (tx *Tx) makeObjectBuckets(bucket string) (keys *boltBucket, ages *timePartitions, err error) {
	if keys, ages = tx.objectBuckets(bucket); keys != nil {
		return keys, ages, nil
	}
	b, err := tx.bolt.Bucket([]byte(objectsBucket)).CreateBucketIfNotExists([]byte(bucket))
	for _, name := range []string{objectKeys, objectPartitions, objectPartitionStarts} {
		if err == nil {
			_, err = b.CreateBucketIfNotExists([]byte(name))
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make object bucket: %w", err)
	}
	keys, ages = tx.objectBuckets(bucket)
	return keys, ages, nil
}
