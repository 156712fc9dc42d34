package meta

import (
	"bytes"
	"errors"
	"time"

	"holdfast/engine/model"
)

// LoseHistory records that a version was removed for good that was in the bucket until
// a time: the moments before it cannot be restored any more.
func (tx *Tx) LoseHistory(bucket string, until time.Time) error {
	err := tx.countBucket(bucket, bucketTally{lost: until})
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	_, err = tx.TrashedBuckets().Update(bucket, func(b *model.TrashedBucket) error {
		if until.After(b.HistorySince) {
			b.HistorySince = until
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil // the bucket is gone for good
	}
	return err
}

// KeyState is what a key of a bucket is now, and what it was at another moment.
type KeyState struct {
	Key string
	// Now and Then are the latest version at each time, which may be a delete marker; zero if there was none.
	Now, Then model.Object
	// Trashed means that Then is in the trash.
	Trashed bool
	// Changed is when a client last wrote or deleted it.
	Changed time.Time
	// Rows is the number of its versions, including those in the trash.
	Rows int
	// Damaged means that the record of one of them cannot be read.
	Damaged bool
}

func (k *KeyState) add(o model.Object, err error) error {
	k.Rows++
	if isDamaged(err) {
		k.Damaged = true
		return nil
	}
	return err
}

func (k *KeyState) addKept(v Version, err error, at time.Time) error {
	if err := k.add(v.Object, err); err != nil || k.Damaged {
		return err
	}
	if v.Latest {
		k.Now, k.Changed = v.Object, later(k.Changed, v.LastModified)
	}
	if v.ExistedAt(at) && v.Version > k.Then.Version {
		k.Then, k.Trashed = v.Object, false
	}
	return nil
}

func (k *KeyState) addTrashed(o model.TrashedObject, err error, at time.Time) error {
	if err := k.add(o.Object, err); err != nil || k.Damaged {
		return err
	}
	k.Changed = later(k.Changed, o.DeletedAt)
	if at.Before(o.DeletedAt) && o.ExistedAt(at) && o.Version > k.Then.Version {
		k.Then, k.Trashed = o.Object, true
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// KeyStates returns up to limit keys of a bucket in their order, after the key after,
// with those of which only the trash has versions, and whether there are more.
func (tx *Tx) KeyStates(bucket, after string, at time.Time, limit int) (states []KeyState, more bool, err error) {
	w := tx.walkHistory(bucket, after)
	for {
		key, ok := w.next()
		if !ok {
			return states, false, nil
		}
		if len(states) == limit {
			return states, true, nil
		}
		state, err := w.take(string(key), at)
		if err != nil {
			return nil, false, err
		}
		states = append(states, state)
	}
}

// TrashedRows returns how many versions of a bucket are in the trash.
func (tx *Tx) TrashedRows(bucket string) (n int64) {
	w := trashWalk{table: tx.TrashedObjects()}
	for w.start(bucket, ""); w.key != nil; w.move() {
		n++
	}
	return n
}

// historyWalk merges the versions of a bucket with those in the trash.
type historyWalk struct {
	kept  *versionWalk // nil if there are none
	trash trashWalk
}

func (tx *Tx) walkHistory(bucket, after string) *historyWalk {
	w := &historyWalk{trash: trashWalk{table: tx.TrashedObjects()}}
	w.trash.start(bucket, after)
	location := tx.locate(bucket)
	if location.keys == nil {
		return w
	}
	w.kept = &versionWalk{bucket: bucket, keys: location.keys.Cursor()}
	if location.versions != nil {
		rows := location.versions.rows.Cursor()
		w.kept.rows = &rows
	}
	w.kept.start("", "", after, "")
	return w
}

// next returns the next key.
func (w *historyWalk) next() (key []byte, ok bool) {
	if w.kept != nil {
		key, ok = w.kept.next()
	}
	if w.trash.key != nil && (!ok || bytes.Compare(w.trash.key, key) < 0) {
		return w.trash.key, true
	}
	return key, ok
}

// take returns the state of the next key and moves on.
func (w *historyWalk) take(key string, at time.Time) (KeyState, error) {
	state := KeyState{Key: key}
	for w.kept != nil {
		if next, ok := w.kept.next(); !ok || string(next) != key {
			break
		}
		version, err := w.kept.take()
		if err := state.addKept(version, err, at); err != nil {
			return state, err
		}
	}
	for ; string(w.trash.key) == key; w.trash.move() {
		trashed, err := w.trash.table.indexed(ByKey, w.trash.id)
		if err := state.addTrashed(trashed, err, at); err != nil {
			return state, err
		}
	}
	return state, nil
}

// trashWalk reads the trashed objects of a bucket by key and version.
type trashWalk struct {
	table  Table[model.TrashedObject]
	cursor boltCursor
	prefix []byte
	key    []byte // of the object, nil at the end
	id     []byte
}

func (w *trashWalk) start(bucket, after string) {
	w.cursor = w.table.indexBucket(ByKey).Cursor()
	w.prefix = append([]byte(bucket), separator)
	from := w.prefix
	if after != "" {
		from = append(append(bytes.Clone(from), after...), separator+1) // after its versions
	}
	w.set(w.cursor.Seek(from))
}

func (w *trashWalk) move() { w.set(w.cursor.Next()) }

func (w *trashWalk) set(entry, id []byte) {
	rest, inside := bytes.CutPrefix(entry, w.prefix)
	w.key, w.id = nil, id
	if inside {
		w.key, _, _ = bytes.Cut(rest, []byte{separator})
	}
}
