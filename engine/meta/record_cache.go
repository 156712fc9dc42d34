package meta

import (
	"sync"
	"sync/atomic"

	"holdfast/engine/model"
)

// cacheLimit bounds the number of cached records.
const cacheLimit = 4096

// recordCache caches decoded records. Every request needs its key and most
// need a bucket; reading and decoding them each time would dominate a small
// request: uploads of 1 KiB by 32 clients are 1.20 to 1.49 times as fast with the
// cache (docs/decisions/0010-tricks.md). A record is valid until the next
// transaction that may have changed it.
type recordCache struct {
	// updates counts the transactions with changes from Update, and all counts
	// every transaction. A transaction is counted before its callers return, so a
	// caller never sees an older record afterwards.
	updates, all atomic.Uint64

	mu    sync.RWMutex
	known map[recordName]cachedRecord
}

type recordName struct{ table, bucket, id string }

type cachedRecord struct {
	count  uint64 // of transactions when the record was read
	record any
}

func newRecordCache() *recordCache {
	return &recordCache{known: map[recordName]cachedRecord{}}
}

// committed counts a transaction with that many changes from Update.
func (s *recordCache) committed(updates int) {
	s.all.Add(1)
	if updates > 0 {
		s.updates.Add(1)
	}
}

func (s *recordCache) put(name recordName, r cachedRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= cacheLimit {
		clear(s.known)
	}
	s.known[name] = r
}

// cached returns the record of that name from the cache, or from read when the
// cache lacks it or transactions has counted another since. The caller must not
// modify what the record points to.
func cached[T any](db *DB, name recordName, transactions *atomic.Uint64, read func(*Tx) (T, error)) (record T, err error) {
	count := transactions.Load() // before the read
	db.records.mu.RLock()
	found, ok := db.records.known[name]
	db.records.mu.RUnlock()
	if ok && found.count == count {
		return found.record.(T), nil
	}
	err = db.View(func(tx *Tx) error {
		record, err = read(tx)
		return err
	})
	if err == nil {
		db.records.put(name, cachedRecord{count, record})
	}
	return record, err
}

// CachedKey returns the key with that hash, or ErrNotFound. The caller must not
// modify what it points to. Like the other cached reads it may still answer after
// Close.
func (db *DB) CachedKey(hash []byte) (model.Key, error) {
	return cached(db, recordName{table: "keys", id: string(hash)}, &db.records.updates, func(tx *Tx) (model.Key, error) {
		return tx.Keys().Find(ByHash, hash)
	})
}

// CachedKeyByID is CachedKey for the key with an id.
func (db *DB) CachedKeyByID(id string) (model.Key, error) {
	return cached(db, recordName{table: "keys", bucket: "id", id: id}, &db.records.updates, func(tx *Tx) (model.Key, error) {
		return tx.Keys().Get(id)
	})
}

// CachedBucketNamed returns the bucket of an organization with that name, like CachedBucket.
func (db *DB) CachedBucketNamed(organization, name string) (model.Bucket, error) {
	return cached(db, recordName{"buckets", organization, name}, &db.records.updates, func(tx *Tx) (model.Bucket, error) {
		return tx.BucketNamed(organization, name)
	})
}

// CachedOrganization returns an organization, or ErrNotFound. The caller must not
// modify what it points to.
func (db *DB) CachedOrganization(id string) (model.Organization, error) {
	return cached(db, recordName{table: "organizations", id: id}, &db.records.updates, func(tx *Tx) (model.Organization, error) {
		return tx.Organizations().Get(id)
	})
}

// CachedBucket returns a bucket, or ErrNotFound. Its counters may be out of date:
// queued changes update them.
func (db *DB) CachedBucket(id string) (model.Bucket, error) {
	return cached(db, recordName{table: "buckets", id: id}, &db.records.updates, func(tx *Tx) (model.Bucket, error) {
		return tx.Buckets().Get(id)
	})
}

// CachedObject returns the latest version of a key, which may be a delete marker, or
// ErrNotFound, without waiting for queued changes.
func (db *DB) CachedObject(bucket, key string) (model.Object, error) {
	return cached(db, recordName{"objects", bucket, key}, &db.records.all, func(tx *Tx) (model.Object, error) {
		return tx.LatestVersion(bucket, key)
	})
}
