package meta

import (
	"slices"

	"holdfast/engine/model"
)

// BucketsNamed returns the buckets of that name in every organization, oldest first.
func (tx *Tx) BucketsNamed(name string) ([]model.Bucket, error) {
	named, err := tx.Buckets().all(ByAnyName, Key(name))
	slices.Reverse(named)
	return named, err
}

// CachedBucketsNamed returns the buckets of that name in every organization, oldest first, or ErrNotFound if there is
// none. Their counters may be stale.
func (db *DB) CachedBucketsNamed(name string) ([]model.Bucket, error) {
	return cached(db, recordName{table: "buckets named", id: name}, &db.records.updates, func(tx *Tx) ([]model.Bucket, error) {
		named, err := tx.BucketsNamed(name)
		if err == nil && len(named) == 0 {
			err = ErrNotFound // not cached, so that strangers cannot displace what is
		}
		return named, err
	})
}
