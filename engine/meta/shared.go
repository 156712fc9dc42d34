package meta

import (
	"bytes"
	"sync"

	"holdfast/engine/model"
)

// sharedLimit bounds how many decoded records are remembered.
const sharedLimit = 4096

// sharedRecords remembers records as they were decoded, beside the bytes they
// were decoded from: every request needs its key and most a bucket, and
// decoding them costs more than finding them. A record is only used as long as
// the bytes are the same, so that nothing has to be forgotten.
type sharedRecords struct {
	mu    sync.RWMutex
	known map[string]sharedRecord
}

type sharedRecord struct {
	data   []byte
	record any
}

func newSharedRecords() *sharedRecords { return &sharedRecords{known: map[string]sharedRecord{}} }

// shared is Table.Get for readers that do not change what the record points
// to.
func shared[T any](s *sharedRecords, table Table[T], id string) (T, error) {
	name := table.schema.name + "/" + id
	data := table.bucket().Get([]byte(id))
	if data == nil || s == nil {
		return table.Get(id)
	}
	s.mu.RLock()
	found, ok := s.known[name]
	s.mu.RUnlock()
	if ok && bytes.Equal(found.data, data) {
		return found.record.(T), nil
	}
	record, err := table.Get(id)
	if err == nil {
		s.put(name, sharedRecord{bytes.Clone(data), record})
	}
	return record, err
}

func (s *sharedRecords) put(name string, r sharedRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= sharedLimit {
		clear(s.known)
	}
	s.known[name] = r
}

// SharedKey returns the key with that hash, or ErrNotFound. What it points to
// is not the caller's to change.
func (tx *Tx) SharedKey(hash []byte) (model.Key, error) {
	id := tx.Keys().indexBucket(ByHash).Get(hash)
	if id == nil {
		return model.Key{}, ErrNotFound
	}
	return shared(tx.records, tx.Keys(), string(id))
}

// SharedBucket returns a bucket, or ErrNotFound.
func (tx *Tx) SharedBucket(id string) (model.Bucket, error) {
	return shared(tx.records, tx.Buckets(), id)
}
