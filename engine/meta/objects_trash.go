package meta

import (
	"encoding/binary"
	"errors"
	"time"

	"holdfast/engine/model"
)

// DeletionKey returns the key ByDeletion of what was deleted at that time.
func DeletionKey(at time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano()))
}

// TrashObject removes the object under key at the time at, and keeps it with
// its bytes among the trashed ones; ErrNotFound when there is none.
func (tx *Tx) TrashObject(bucket, key string, at time.Time) error {
	b, err := tx.Buckets().Get(bucket)
	if err != nil {
		return err
	}
	old, err := tx.DeleteObject(bucket, key, at)
	if err != nil || old.Blob == "" {
		return err
	}
	if err := tx.claimBytes(old); err != nil {
		return err
	}
	return tx.TrashedObjects().Insert(model.TrashedObject{Object: old, Organization: b.Organization, DeletedAt: at})
}

// PurgeObject removes a trashed object for good.
func (tx *Tx) PurgeObject(version string) error {
	old, err := tx.TrashedObjects().Get(version)
	if err != nil {
		return err
	}
	if err := tx.releaseBytes(old.Object); err != nil {
		return err
	}
	return tx.TrashedObjects().Delete(version)
}

// UntrashObject brings a trashed object back. When another object has its key
// by now it is ErrExists, when its bucket is gone ErrNotFound.
func (tx *Tx) UntrashObject(version string, at time.Time) (model.Object, error) {
	old, err := tx.TrashedObjects().Get(version)
	if err != nil {
		return model.Object{}, err
	}
	if _, err := tx.Object(old.Bucket, old.Key); !errors.Is(err, ErrNotFound) {
		return old.Object, ErrExists
	}
	if err := tx.countObject(old.Object, 1, at); err != nil {
		return old.Object, err
	}
	if err := tx.storeObject(old.Object); err != nil {
		return old.Object, err
	}
	return old.Object, tx.TrashedObjects().Delete(version)
}

// ObjectOfVersion returns the object under key if that is its version, also in
// a trashed bucket, else the trashed object with it, else ErrNotFound.
func (tx *Tx) ObjectOfVersion(bucket, key, version string) (model.Object, error) {
	object, err := objectIn(tx.keptObjects(bucket).keys, bucket, key)
	if err == nil && object.Version == version {
		return object, nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return object, err
	}
	trashed, err := tx.TrashedObjects().Get(version)
	return trashed.Object, err
}
