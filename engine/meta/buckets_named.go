package meta

import (
	"errors"
	"slices"
	"strings"

	"holdfast/engine/model"
)

// BucketsNamed returns the buckets of that name in every organization, oldest first.
func (tx *Tx) BucketsNamed(name string) (named []model.Bucket, err error) {
	err = tx.Organizations().All(func(o model.Organization) error {
		b, err := tx.BucketNamed(o.ID, name)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		named = append(named, b)
		return err
	})
	slices.SortFunc(named, func(a, b model.Bucket) int { return strings.Compare(a.ID, b.ID) }) // ids sort by time
	return named, err
}

// CachedOldestBucketNamed returns the oldest bucket of that name in any organization, or ErrNotFound. Its counters may
// be stale.
func (db *DB) CachedOldestBucketNamed(name string) (model.Bucket, error) {
	return cached(db, recordName{table: "oldest bucket", id: name}, &db.records.updates, func(tx *Tx) (model.Bucket, error) {
		named, err := tx.BucketsNamed(name)
		if err == nil && len(named) == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return model.Bucket{}, err
		}
		return named[0], nil
	})
}
