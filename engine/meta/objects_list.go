package meta

import (
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"holdfast/engine/model"
)

// listStep is how far each of two walks goes before it is the other's turn.
const listStep = 64

// NewestObjects returns up to limit objects whose key begins with prefix,
// newest first, older than the version before ("" from the start), and
// whether there are more.
//
// Walking back in time is quick when many keys have the prefix, walking the
// keys is quick when few have; which it is nobody knows beforehand. So both
// are walked in turns, and the first to finish answers.
func (tx *Tx) NewestObjects(bucket, prefix, before string, limit int) ([]model.Object, bool, error) {
	keys, versions := tx.objectBuckets(bucket)
	if versions == nil {
		return nil, false, nil
	}
	inTime := newTimeWalk(versions, prefix, before, limit+1)
	byKey := newKeyWalk(keys, prefix, before, limit+1)
	var found []place
	for {
		if inTime.step(listStep) {
			found = inTime.found
			break
		}
		if prefix != "" && byKey.step(listStep) {
			found = byKey.newestFirst()
			break
		}
	}
	more := len(found) > limit
	objects := make([]model.Object, 0, min(len(found), limit))
	for _, f := range found[:min(len(found), limit)] {
		object, err := tx.Object(bucket, f.key)
		if err == nil && object.Version != f.version || errors.Is(err, ErrNotFound) {
			err = &CorruptError{Where: fmt.Sprintf("objects/%s version %q", bucket, f.version)}
		}
		if err != nil {
			return nil, false, err
		}
		objects = append(objects, object)
	}
	return objects, more, nil
}

// place is an object in both orders.
type place struct{ version, key string }

// timeWalk walks from the newest object to the oldest.
type timeWalk struct {
	cursor       *bbolt.Cursor
	version, key []byte
	prefix       []byte
	want         int
	found        []place
}

func newTimeWalk(versions *bbolt.Bucket, prefix, before string, want int) *timeWalk {
	w := &timeWalk{cursor: versions.Cursor(), prefix: []byte(prefix), want: want}
	w.version, w.key = lastBefore(w.cursor, []byte(before))
	return w
}

// step goes n objects on, and reports whether it has found what is wanted, or
// all there is.
func (w *timeWalk) step(n int) bool {
	for ; n > 0 && w.version != nil; n-- {
		if bytes.HasPrefix(w.key, w.prefix) {
			w.found = append(w.found, place{string(w.version), string(w.key)})
			if len(w.found) == w.want {
				return true
			}
		}
		w.version, w.key = w.cursor.Prev()
	}
	return w.version == nil
}

// keyWalk walks the keys with the prefix, and keeps the newest.
type keyWalk struct {
	cursor    *bbolt.Cursor
	key, data []byte
	prefix    []byte
	before    string
	want      int
	newest    oldestFirst
}

func newKeyWalk(keys *bbolt.Bucket, prefix, before string, want int) *keyWalk {
	w := &keyWalk{cursor: keys.Cursor(), prefix: []byte(prefix), before: before, want: want}
	w.key, w.data = w.cursor.Seek(w.prefix)
	return w
}

func (w *keyWalk) step(n int) bool {
	for ; n > 0 && w.more(); n-- {
		version := w.data[:min(len(w.data), model.VersionLength)]
		if w.before == "" || string(version) < w.before {
			w.keep(version)
		}
		w.key, w.data = w.cursor.Next()
	}
	return !w.more()
}

func (w *keyWalk) more() bool { return w.key != nil && bytes.HasPrefix(w.key, w.prefix) }

func (w *keyWalk) keep(version []byte) {
	if len(w.newest) < w.want {
		heap.Push(&w.newest, place{string(version), string(w.key)})
	} else if string(version) > w.newest[0].version {
		w.newest[0] = place{string(version), string(w.key)}
		heap.Fix(&w.newest, 0)
	}
}

func (w *keyWalk) newestFirst() []place {
	slices.SortFunc(w.newest, func(a, b place) int { return strings.Compare(b.version, a.version) })
	return w.newest
}

// oldestFirst is a heap with the oldest at its top.
type oldestFirst []place

func (h oldestFirst) Len() int           { return len(h) }
func (h oldestFirst) Less(i, j int) bool { return h[i].version < h[j].version }
func (h oldestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *oldestFirst) Push(x any)        { *h = append(*h, x.(place)) }
func (h *oldestFirst) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// Folder is what a level of a bucket holds: objects, and the folders that
// other objects lie in.
type Folder struct {
	Objects []model.Object
	// Prefixes are the folders, each ending with the delimiter.
	Prefixes []string
	// Last is the last key or prefix of this part.
	Last string
	More bool
}

// ListFolder returns up to limit objects and prefixes of the level below
// prefix, in the order of keys, behind after ("" from the start). A folder
// costs one look, however much it holds.
func (tx *Tx) ListFolder(bucket, prefix, delimiter, after string, limit int) (Folder, error) {
	var f Folder
	keys, _ := tx.objectBuckets(bucket)
	if keys == nil {
		return f, nil
	}
	cursor := keys.Cursor()
	key, data := cursor.Seek([]byte(prefix))
	if after != "" {
		key, data = seekBehind(cursor, prefix, after, delimiter)
	}
	for ; key != nil && bytes.HasPrefix(key, []byte(prefix)); key, data = cursor.Next() {
		if len(f.Objects)+len(f.Prefixes) == limit {
			f.More = true
			return f, nil
		}
		if i := strings.Index(string(key[len(prefix):]), delimiter); i >= 0 {
			f.Last = string(key[:len(prefix)+i+len(delimiter)])
			f.Prefixes = append(f.Prefixes, f.Last)
			if key, _ = cursor.Seek(behindPrefix(f.Last)); key == nil {
				return f, nil
			}
			cursor.Prev() // the loop goes on to what was found
			continue
		}
		object, err := decodeObject(bucket, data)
		if err != nil {
			return f, err
		}
		f.Objects, f.Last = append(f.Objects, object), object.Key
	}
	return f, nil
}

// seekBehind moves the cursor behind the last key or folder of a part. (The
// object whose key is the prefix itself looks like a folder, and is none.)
func seekBehind(cursor *bbolt.Cursor, prefix, after, delimiter string) (key, data []byte) {
	if after != prefix && strings.HasSuffix(after, delimiter) {
		return cursor.Seek(behindPrefix(after))
	}
	return cursor.Seek(append([]byte(after), 0))
}

// behindPrefix returns the first key behind all that begin with prefix. Keys
// are UTF-8, which never has the byte 0xff.
func behindPrefix(prefix string) []byte { return append([]byte(prefix), 0xff) }
