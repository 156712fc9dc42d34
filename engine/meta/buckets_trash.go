package meta

import (
	"time"

	"holdfast/engine/model"
)

const trashedTable = "buckets.trash"

// TrashBucket removes the bucket at the time at, and keeps it with its objects
// among the trashed ones.
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

// UntrashBucket brings a trashed bucket back with its objects. When another has
// its name by now it is ErrExists.
func (tx *Tx) UntrashBucket(id string, at time.Time) (model.Bucket, error) {
	trashed, err := tx.TrashedBuckets().Get(id)
	if err != nil {
		return model.Bucket{}, err
	}
	trashed.UpdatedAt = at
	if err := tx.Buckets().Insert(trashed.Bucket); err != nil {
		return trashed.Bucket, err
	}
	return trashed.Bucket, tx.TrashedBuckets().Delete(id)
}

// PurgeBucket removes a trashed bucket for good; its objects go as DropBucket
// has them go.
func (tx *Tx) PurgeBucket(id string) error {
	if err := tx.TrashedBuckets().Delete(id); err != nil {
		return err
	}
	return tx.dropObjects(id)
}
