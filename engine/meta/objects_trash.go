package meta

import (
	"encoding/binary"
	"errors"
	"time"

	"holdfast/engine/model"
)

// DeletionKey returns the ByDeletion key for a deletion at time at.
func DeletionKey(at time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano()))
}

// TrashObject moves the object under key with its bytes to the trash at time at, or
// returns ErrNotFound.
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

// PurgeObject removes a trashed object permanently.
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

// UntrashObject restores a trashed object. It returns ErrExists if another object
// now has the key, and ErrNotFound if the bucket is gone.
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

// ObjectOfVersion returns the object under key if it has that version, including
// in a trashed bucket; otherwise the trashed object with it; otherwise ErrNotFound.
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
