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

// shared decodes data, the record of that name, unless it is known. The caller
// does not change what the record points to.
func shared[T any](s *sharedRecords, name string, data []byte, decode func() (T, error)) (T, error) {
	if data == nil || s == nil {
		return decode()
	}
	s.mu.RLock()
	found, ok := s.known[name]
	s.mu.RUnlock()
	if ok && bytes.Equal(found.data, data) {
		return found.record.(T), nil
	}
	record, err := decode()
	if err == nil {
		s.put(name, sharedRecord{bytes.Clone(data), record})
	}
	return record, err
}

func sharedGet[T any](s *sharedRecords, table Table[T], id string) (T, error) {
	return shared(s, table.schema.name+"/"+id, table.bucket().Get([]byte(id)), func() (T, error) { return table.Get(id) })
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
	return sharedGet(tx.records, tx.Keys(), string(id))
}

// SharedOrganization returns an organization, or ErrNotFound. What it points
// to is not the caller's to change.
func (tx *Tx) SharedOrganization(id string) (model.Organization, error) {
	return sharedGet(tx.records, tx.Organizations(), id)
}

// SharedBucket returns a bucket, or ErrNotFound.
func (tx *Tx) SharedBucket(id string) (model.Bucket, error) {
	return sharedGet(tx.records, tx.Buckets(), id)
}

// SharedObject returns the object under key, or ErrNotFound.
func (tx *Tx) SharedObject(bucket, key string) (model.Object, error) {
	data, err := tx.objectData(bucket, key)
	if err != nil {
		return model.Object{}, err
	}
	return shared(tx.records, "objects/"+bucket+"/"+key, data, func() (model.Object, error) { return decodeObject(bucket, data) })
}
