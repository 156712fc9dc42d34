package meta

import (
	"errors"
	"fmt"
	"time"

	"holdfast/engine/model"
)

// The objects bucket contains a bucket for each bucket id, which contains the
// current objects by key and their index by age, and the other versions if there
// ever were any (objects_versions.go). The value of an object is its version
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

// PutObject stores a new version, which may be a delete marker, and makes it the
// latest of its key. It keeps the version before, except a null version that is
// replaced by another one, which it returns; zero if there was none. It updates the
// bucket's counters and the rows of the bytes. If the bucket is gone, it returns
// ErrNotFound.
func (tx *Tx) PutObject(object model.Object) (removed model.Object, err error) {
	if removed, err = tx.makeWay(object); err != nil {
		return removed, err
	}
	if err := tx.countObject(object, 1, object.LastModified); err != nil {
		return removed, err
	}
	if err := tx.claimBytes(object); err != nil {
		return removed, err
	}
	return removed, tx.storeLatest(object)
}

// storeLatest stores the latest version of a key, and indexes its lock.
func (tx *Tx) storeLatest(object model.Object) error {
	if object.DeleteMarker {
		return tx.storeVersion(object)
	}
	if err := tx.storeObject(object); err != nil {
		return err
	}
	return tx.indexLock(nil, lockRow(object), object)
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
// a version that is not current, nor one in the trash, alone or with its bucket.
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
		return tx.keptObjects(object.Bucket).rewrite(old)
	}
	return err
}

// DeleteObject removes the current object under key at time at and returns it, or
// ErrNotFound. It removes a damaged record too; otherwise nothing could replace it.
// It is for objects of which no other versions are kept.
func (tx *Tx) DeleteObject(bucket, key string, at time.Time) (model.Object, error) {
	old, damaged, err := tx.currentObject(bucket, key)
	if err != nil {
		return old, err
	}
	return old, tx.removeCurrent(old, damaged, at)
}

// currentObject is Object that knows of a damaged record what its key says and the version.
func (tx *Tx) currentObject(bucket, key string) (current model.Object, damaged bool, err error) {
	current, err = tx.Object(bucket, key)
	if !isDamaged(err) {
		return current, false, err
	}
	keys, _ := tx.objectBuckets(bucket)
	data := keys.Get([]byte(key))
	return model.Object{Bucket: bucket, Key: key, Version: string(data[:min(len(data), model.VersionLength)])}, true, nil
}

// removeCurrent removes what currentObject has returned.
func (tx *Tx) removeCurrent(old model.Object, damaged bool, at time.Time) error {
	keys, ages := tx.objectBuckets(old.Bucket)
	if err := keys.Delete([]byte(old.Key)); err != nil {
		return fmt.Errorf("remove object: %w", err)
	}
	if err := ages.remove([]byte(old.Version), []byte(old.Key)); err != nil {
		return err
	}
	if !damaged { // otherwise the reference to its bytes is unreadable
		if err := errors.Join(tx.releaseBytes(old), tx.indexLock(lockRow(old), nil, old)); err != nil {
			return err
		}
	}
	return tx.countObject(old, -1, at)
}

func isDamaged(err error) bool {
	_, damaged := errors.AsType[*CorruptError](err)
	return damaged
}

func (tx *Tx) countObject(object model.Object, by int64, at time.Time) error {
	return tx.countBucket(object.Bucket, bucketTally{objects: by, size: by * object.SizeBytes, at: at})
}

// countNoncurrent counts a row of the table of versions.
func (tx *Tx) countNoncurrent(object model.Object, by int64, at time.Time) error {
	return tx.countBucket(object.Bucket, bucketTally{noncurrent: by, noncurrentSize: by * object.SizeBytes, at: at})
}

func (tx *Tx) countBucket(bucket string, change bucketTally) error {
	if tx.batch != nil {
		return tx.tallyBucket(bucket, change)
	}
	return tx.addToBucket(bucket, change)
}

func (tx *Tx) addToBucket(bucket string, change bucketTally) error {
	_, err := tx.Buckets().Update(bucket, func(b *model.Bucket) error {
		b.ObjectCount += change.objects
		b.SizeBytes += change.size
		b.NoncurrentCount += change.noncurrent
		b.NoncurrentBytes += change.noncurrentSize
		if !change.at.IsZero() {
			b.UpdatedAt = change.at
		}
		if change.lost.After(b.HistorySince) {
			b.HistorySince = change.lost
		}
		return nil
	})
	return err
}

// objectLocation is the location of a bucket's objects.
type objectLocation struct {
	keys     *boltBucket
	ages     *timePartitions
	versions *versionTable // nil if the bucket never had any but current ones
}

// find returns the version of a key, or ErrNotFound.
func (l objectLocation) find(bucket, key, version string) (model.Object, error) {
	object, err := objectIn(l.keys, bucket, key)
	if err == nil && object.Version == version || err != nil && !errors.Is(err, ErrNotFound) {
		return object, err
	}
	return l.versions.get(bucket, key, version)
}

// rewrite replaces the record of a version where it is.
func (l objectLocation) rewrite(object model.Object) error {
	if current, err := objectIn(l.keys, object.Bucket, object.Key); err == nil && current.Version == object.Version {
		return putObject(l.keys, object)
	}
	return l.versions.put(object)
}

// objectBuckets returns the location of a bucket's current objects, nil if it never had
// any or was deleted.
func (tx *Tx) objectBuckets(bucket string) (keys *boltBucket, ages *timePartitions) {
	location := tx.locate(bucket)
	return location.keys, location.ages
}

func (tx *Tx) locate(bucket string) objectLocation {
	if tx.batch == nil {
		return tx.findObjects(bucket)
	}
	location, known := tx.batch.locations[bucket]
	if !known {
		if location = tx.findObjects(bucket); location.keys != nil {
			location.ages.keeping = true
			tx.batch.locations[bucket] = location
		}
	}
	return location
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
	return objectLocation{
		b.Bucket([]byte(objectKeys)),
		&timePartitions{starts: b.Bucket([]byte(objectPartitionStarts)), members: b.Bucket([]byte(objectPartitions)), size: partitionSize},
		findVersions(b),
	}
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
