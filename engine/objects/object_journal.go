package objects

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// objectNote is a change of an object in the journal of the blob store, with everything that the metadata need. Writing
// it is the only sync of an acknowledged upload; the metadata follow the journal.
type objectNote struct {
	Act objectAct `json:"act"`
	// Object is the new version, which may be a delete marker. For a deletion for good only its bucket, key and time
	// are set, and the version unless it is the only one.
	Object model.Object `json:"object"`
	// From is the previous blob of a moved object.
	From string `json:"from,omitempty"`
	// Upload is the resumable or multipart upload that became the object, if any.
	Upload string `json:"upload,omitempty"`
	// Idempotent is the IdempotentRequest that made the upload, if any.
	Idempotent string `json:"once,omitempty"`
	// Keep moves what the change removes to the trash.
	Keep  bool              `json:"keep,omitempty"`
	Audit *model.AuditEntry `json:"audit,omitempty"`
	// counted is called once the totals include the object; nil in a replay.
	counted func()
}

type objectAct string

const (
	actPut    objectAct = "put"
	actDelete objectAct = "delete"
	actMove   objectAct = "move" // compaction moved the bytes
)

func (n *objectNote) encode() ([]byte, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("encode note: %w", err)
	}
	return text, nil
}

// deliver queues durable journal entries for the metadata.
func (s *Service) deliver(entries []blobstore.Entry) {
	for _, entry := range entries {
		note, ok := entry.Value.(*objectNote)
		if !ok { // from a replay or a copy
			note = new(objectNote)
			if err := json.Unmarshal(entry.Note, note); err != nil {
				s.noteDamaged(entry.Position, fmt.Errorf("decode note: %w", err))
				continue
			}
		}
		at := entry.Position // so that the queued changes do not retain the entry
		if entry.Ref != "" {
			note.Object.Blob, note.Object.Segment = string(entry.Ref), at.Segment()
		}
		position := uint64(at)
		s.recent.add(note, position)
		s.core.Meta.Enqueue(position, func(tx *meta.Tx) error { return s.applyNote(tx, note, position) }, func(tx *meta.Tx, err error) error {
			tx.OnCommit(func() { s.noteDone(note, position) })
			return s.noteJournalDamage(tx, at, err)
		})
	}
}

// noteDamaged records that a record of the journal cannot be replayed.
func (s *Service) noteDamaged(at blobstore.Position, err error) {
	note := func(tx *meta.Tx) error { return s.noteJournalDamage(tx, at, err) }
	s.core.Meta.Enqueue(uint64(at), note, func(tx *meta.Tx, _ error) error { return note(tx) })
}

// noteDone is called once the metadata have applied or skipped a note.
func (s *Service) noteDone(note *objectNote, position uint64) {
	s.recent.done(note, position)
	if note.counted != nil {
		note.counted()
	}
}

// applyNote applies a note to the metadata.
func (s *Service) applyNote(tx *meta.Tx, note *objectNote, position uint64) error {
	tx.OnCommit(func() { s.noteDone(note, position) })
	old, err := s.applyAct(tx, note)
	if errors.Is(err, meta.ErrNotFound) {
		err = nil // its bucket has been dropped together with the object
	}
	if err != nil {
		return err
	}
	if old.Blob != "" && old.Segment == 0 {
		tx.OnCommit(s.UnlinkSoon)
	}
	if note.Upload != "" {
		err := noteComplete(tx, note.Upload, note.Object)
		if errors.Is(err, meta.ErrNotFound) {
			err = s.endMultipart(tx, note.Upload)
		}
		if err != nil && !errors.Is(err, meta.ErrNotFound) {
			tx.OnCommit(func() {
				s.core.Log.Error("the record of an upload that is complete", "upload", note.Upload, "error", err)
			})
		}
	}
	if err := core.MarkIdempotentDone(tx, note.Idempotent, objectResource(note.Object.Bucket, note.Object.Key)); err != nil {
		return err
	}
	if note.Audit == nil {
		return nil
	}
	entry := *note.Audit
	return tx.AppendAudit(s.core.Chain(), &entry)
}

// applyAct applies the change and returns the object whose bytes become garbage. What is not kept
// ends the history of the bucket.
func (s *Service) applyAct(tx *meta.Tx, note *objectNote) (old model.Object, err error) {
	o := note.Object
	if note.Act == actMove {
		return old, tx.MoveObject(o, note.From)
	}
	if o.LastModified, err = afterRestore(tx, o); err != nil {
		return old, err
	}
	switch {
	case note.Act == actDelete && o.Version != "":
		old, err = tx.DeleteVersion(o.Bucket, o.Key, o.VersionID(), o.LastModified)
	case note.Act == actDelete:
		old, err = tx.DeleteObject(o.Bucket, o.Key, o.LastModified)
	default:
		old, err = tx.PutObject(o)
	}
	switch {
	case err != nil || old.Version == "":
		return old, err
	case note.Keep:
		return model.Object{}, tx.KeepDeleted(old, o.LastModified)
	}
	return old, tx.LoseHistory(old.Bucket, o.LastModified)
}

// afterRestore returns when an object was written: after the beginning of the restore of its bucket that is running, if any,
// also if the clock was set back since. What was written before is in the metadata when a restore begins.
func afterRestore(tx *meta.Tx, o model.Object) (time.Time, error) {
	r, err := tx.BucketRestores().Get(o.Bucket)
	switch {
	case errors.Is(err, meta.ErrNotFound):
		return o.LastModified, nil
	case err == nil && r.Status == model.BucketRestoreRunning && !o.LastModified.After(r.StartedAt):
		return r.StartedAt.Add(1), nil
	}
	return o.LastModified, err
}

// recentObjects holds the latest versions that are in the journal but not yet in the metadata.
type recentObjects struct {
	mu      sync.RWMutex
	byKey   map[objectID]recentObject
	uploads map[string]bool // resumable uploads that have become objects
}

type objectID struct{ bucket, key string }

type recentObject struct {
	position uint64
	object   model.Object
	deleted  bool // for good
	unknown  bool // a version was deleted for good: only the metadata know which is the latest then
}

func newRecentObjects() *recentObjects {
	return &recentObjects{byKey: map[objectID]recentObject{}, uploads: map[string]bool{}}
}

func (r *recentObjects) add(note *objectNote, position uint64) {
	if note.Act == actMove { // the object is unchanged, and its old bytes are readable until then
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byKey[objectID{note.Object.Bucket, note.Object.Key}] = recentObject{position, note.Object, note.Act == actDelete, note.Act == actDelete && note.Object.Version != ""}
	if note.Upload != "" {
		r.uploads[note.Upload] = true
	}
}

func (r *recentObjects) done(note *objectNote, position uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := objectID{note.Object.Bucket, note.Object.Key}
	if r.byKey[id].position == position {
		delete(r.byKey, id)
	}
	delete(r.uploads, note.Upload)
}

func (r *recentObjects) completed(upload string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.uploads[upload]
}

func (r *recentObjects) get(bucket, key string) (recentObject, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	found, ok := r.byKey[objectID{bucket, key}]
	return found, ok
}

// objectLocks serialize changes that the metadata, which only follow the journal, cannot: changes of one object, and
// the deletion of a bucket against uploads into it. Locks are striped: many objects share one.
type objectLocks struct {
	seed    maphash.Seed
	buckets [64]sync.RWMutex
	keys    [1024]sync.Mutex
}

func newObjectLocks() *objectLocks { return &objectLocks{seed: maphash.MakeSeed()} }

func (l *objectLocks) ofBucket(bucket string) *sync.RWMutex {
	return &l.buckets[maphash.String(l.seed, bucket)%uint64(len(l.buckets))]
}

// bucket blocks every change of the bucket's objects until release is called.
func (l *objectLocks) bucket(bucket string) (release func()) {
	lock := l.ofBucket(bucket)
	lock.Lock()
	return lock.Unlock
}

// object blocks other changes of the object until release is called.
func (l *objectLocks) object(bucket, key string) (release func()) {
	shared := l.ofBucket(bucket)
	own := &l.keys[maphash.Comparable(l.seed, objectID{bucket, key})%uint64(len(l.keys))]
	shared.RLock()
	own.Lock()
	return func() {
		own.Unlock()
		shared.RUnlock()
	}
}

// lockBucket returns a bucket of the call's organization and blocks every change of its objects until release is called.
func (s *Service) lockBucket(call *model.Call, id string) (b model.Bucket, release func(), err error) {
	return s.lockIn(call, id, func() func() { return s.locks.bucket(id) })
}

// lockObject returns a bucket of the call's organization and does what LockObject does.
func (s *Service) lockObject(call *model.Call, bucket, key string) (b model.Bucket, release func(), err error) {
	return s.lockIn(call, bucket, func() func() { return s.locks.object(bucket, key) })
}

// lockIn takes a lock in a bucket of the call's organization. Nobody waits for a lock in a bucket of another, whose holder
// would be disturbed and told of.
func (s *Service) lockIn(call *model.Call, bucket string, lock func() (release func())) (b model.Bucket, release func(), err error) {
	if b, err = s.bucket(call, bucket); err != nil {
		return b, nil, err
	}
	release = lock()
	if b, err = s.bucket(call, bucket); err != nil { // read again: it may have changed before the lock
		release()
		return b, nil, err
	}
	return b, release, nil
}

// LockObject blocks other changes of an object, and the deletion of its bucket,
// until release is called.
func (s *Service) LockObject(bucket, key string) (release func()) { return s.locks.object(bucket, key) }
