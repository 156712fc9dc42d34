package meta

import (
	"time"

	"holdfast/engine/model"
)

const trashedTable = "buckets.trash"

// TrashBucket moves the bucket with its objects to the trash at time at.
func (tx *Tx) TrashBucket(id string, at time.Time) error {
	b, err := tx.Buckets().Get(id)
	if err != nil {
		return err
	}
	if err := tx.Buckets().Delete(id); err != nil {
		return err
	}
	return tx.TrashedBuckets().Insert(model.TrashedBucket{Bucket: b, DeletedAt: at})
}

// UntrashBucket restores a trashed bucket with its objects. It returns ErrExists if
// another bucket now has the name.
func (tx *Tx) UntrashBucket(id string, at time.Time) (model.Bucket, error) {
	trashed, err := tx.TrashedBuckets().Get(id)
	if err != nil {
		return model.Bucket{}, err
	}
	trashed.UpdatedAt = at
	if err := tx.InsertBucket(&trashed.Bucket); err != nil {
		return trashed.Bucket, err
	}
	return trashed.Bucket, tx.TrashedBuckets().Delete(id)
}

// PurgeBucket removes a trashed bucket permanently. Its objects are discarded as by
// DropBucket.
func (tx *Tx) PurgeBucket(id string) error {
	if err := tx.TrashedBuckets().Delete(id); err != nil {
		return err
	}
	return tx.dropObjects(id)
}
