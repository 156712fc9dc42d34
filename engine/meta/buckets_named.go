package meta

import (
	"cmp"
	"math"
	"slices"

	"holdfast/engine/model"
)

// BucketsNamed returns the buckets of that name in every organization, first the one that has had it longest: one that
// was in the trash meanwhile does not take it from another.
func (tx *Tx) BucketsNamed(name string) ([]model.Bucket, error) {
	named, err := tx.Buckets().all(ByAnyName, Key(name))
	slices.Reverse(named)
	slices.SortStableFunc(named, func(a, b model.Bucket) int { return cmp.Compare(a.NameOrder, b.NameOrder) })
	return named, err
}

// InsertBucket adds a bucket, which gets its name after all that have it.
func (tx *Tx) InsertBucket(b *model.Bucket) error {
	b.NameOrder = 0
	for _, other := range tx.Buckets().Oldest(ByAnyName, Key(b.Name), "", math.MaxInt) {
		b.NameOrder = max(b.NameOrder, other.NameOrder+1)
	}
	return tx.Buckets().Insert(*b)
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
