package meta

import (
	"sync"
	"sync/atomic"

	"holdfast/engine/model"
)

// sharedLimit bounds how many decoded records are remembered.
const sharedLimit = 4096

// sharedRecords remembers records as they were decoded: every request needs
// its key and most a bucket, and to look them up and decode them again each
// time costs more than all else about a small request: uploads of 1 KiB by 32
// clients are 1.20 to 1.49 times as fast with it (docs/decisions/0010-tricks.md). A record is good until
// the next transaction that may have changed it.
type sharedRecords struct {
	// updates counts the transactions that Update's callers had a part in, and
	// all every transaction. They are counted before anybody is told of them, so
	// that nobody who was told sees what was before.
	updates, all atomic.Uint64

	mu    sync.RWMutex
	known map[recordName]sharedRecord
}

type recordName struct{ table, bucket, id string }

type sharedRecord struct {
	count  uint64 // of transactions when it was read
	record any
}

func newSharedRecords() *sharedRecords {
	return &sharedRecords{known: map[recordName]sharedRecord{}}
}

// committed counts a transaction, of which so many changes were Update's.
func (s *sharedRecords) committed(updates int) {
	s.all.Add(1)
	if updates > 0 {
		s.updates.Add(1)
	}
}

func (s *sharedRecords) put(name recordName, r sharedRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= sharedLimit {
		clear(s.known)
	}
	s.known[name] = r
}

// shared returns the record of that name, which read reads unless it is known
// and transactions has counted none since. The caller does not change what the
// record points to.
func shared[T any](db *DB, name recordName, transactions *atomic.Uint64, read func(*Tx) (T, error)) (record T, err error) {
	count := transactions.Load() // before it is read
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
		db.records.put(name, sharedRecord{count, record})
	}
	return record, err
}

// SharedKey returns the key with that hash, or ErrNotFound. What it points to
// is not the caller's to change. Like the others of its kind it may go on to
// answer after Close.
func (db *DB) SharedKey(hash []byte) (model.Key, error) {
	return shared(db, recordName{table: "keys", id: string(hash)}, &db.records.updates, func(tx *Tx) (model.Key, error) {
		return tx.Keys().Find(ByHash, hash)
	})
}

// SharedOrganization returns an organization, or ErrNotFound. What it points
// to is not the caller's to change.
func (db *DB) SharedOrganization(id string) (model.Organization, error) {
	return shared(db, recordName{table: "organizations", id: id}, &db.records.updates, func(tx *Tx) (model.Organization, error) {
		return tx.Organizations().Get(id)
	})
}

// SharedBucket returns a bucket, or ErrNotFound. Its counters are those of any
// time: what is deferred changes them.
func (db *DB) SharedBucket(id string) (model.Bucket, error) {
	return shared(db, recordName{table: "buckets", id: id}, &db.records.updates, func(tx *Tx) (model.Bucket, error) {
		return tx.Buckets().Get(id)
	})
}

// SharedObject returns the object under key, or ErrNotFound, without waiting
// for what is deferred.
func (db *DB) SharedObject(bucket, key string) (model.Object, error) {
	return shared(db, recordName{"objects", bucket, key}, &db.records.all, func(tx *Tx) (model.Object, error) {
		return tx.Object(bucket, key)
	})
}
