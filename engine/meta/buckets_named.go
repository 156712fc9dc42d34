package meta

import (
	"slices"

	"holdfast/engine/model"
)

// BucketsNamed returns the buckets of that name in every organization, first the one that has had it longest: one that
// was in the trash meanwhile does not take it from another.
func (tx *Tx) BucketsNamed(name string) ([]model.Bucket, error) {
	named, err := tx.Buckets().all(ByAnyName, Key(name))
	slices.Reverse(named)
	slices.SortStableFunc(named, func(a, b model.Bucket) int { return a.NamedSince().Compare(b.NamedSince()) })
	return named, err
}

// CachedBucketsNamed returns what BucketsNamed does, or ErrNotFound if there is none. The buckets' counters may be stale.
func (db *DB) CachedBucketsNamed(name string) ([]model.Bucket, error) {
	return cached(db, recordName{table: "buckets named", id: name}, &db.records.updates, func(tx *Tx) ([]model.Bucket, error) {
		named, err := tx.BucketsNamed(name)
		if err == nil && len(named) == 0 {
			err = ErrNotFound // not cached, so that strangers cannot displace what is
		}
		return named, err
	})
}
