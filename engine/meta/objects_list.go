package meta

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"holdfast/engine/model"
)

// NewestObjects returns up to limit objects whose keys begin with prefix, newest
// first, older than the version before ("" to start at the newest), and whether
// there are more.
func (tx *Tx) NewestObjects(bucket, prefix, before string, limit int) ([]model.Object, bool, error) {
	_, ages := tx.objectBuckets(bucket)
	if ages == nil {
		return nil, false, nil
	}
	var below []byte
	if before != "" {
		below = []byte(before)
	}
	found := ages.newest([]byte(prefix), below, limit+1)
	objects, err := tx.objectsOf(bucket, found[:min(limit, len(found))])
	return objects, len(found) > limit, err
}

// OldestObjects returns up to limit objects whose keys begin with prefix, with versions
// below before, oldest first. It leaves out what cannot be read, and returns that as an error beside the others.
func (tx *Tx) OldestObjects(bucket, prefix, before string, limit int) ([]model.Object, error) {
	_, ages := tx.objectBuckets(bucket)
	if ages == nil {
		return nil, nil
	}
	return tx.objectsOf(bucket, ages.oldest([]byte(prefix), []byte(before), limit))
}

// objectsOf returns the objects of index members. It leaves out what cannot be read, and returns that as an error beside the
// others.
func (tx *Tx) objectsOf(bucket string, members []member) (objects []model.Object, err error) {
	objects = make([]model.Object, 0, len(members))
	for _, m := range members {
		object, damage := tx.Object(bucket, string(m.key))
		if damage == nil && object.Version != string(m.version) || errors.Is(damage, ErrNotFound) {
			damage = &CorruptError{Where: fmt.Sprintf("objects/%s version %q", bucket, m.version)}
		}
		if damage != nil {
			err = errors.Join(err, damage)
			continue
		}
		objects = append(objects, object)
	}
	return objects, err
}

// Folder is one level of a bucket: objects, and the folders that contain other
// objects.
type Folder struct {
	Objects []model.Object
	// Prefixes are the folders, each ending with the delimiter.
	Prefixes []string
	// Last is the last key or prefix of this page.
	Last string
	More bool
}

// ListFolder returns up to limit objects and prefixes of the level below prefix, in
// key order, starting after after ("" from the start). A folder costs one seek,
// whatever its size. Without a delimiter there are no folders.
func (tx *Tx) ListFolder(bucket, prefix, delimiter, after string, limit int) (Folder, error) {
	var f Folder
	keys, _ := tx.objectBuckets(bucket)
	if keys == nil {
		return f, nil
	}
	cursor := keys.Cursor()
	key, data := cursor.Seek([]byte(prefix))
	if after >= prefix && after != "" {
		key, data = seekAfter(cursor, prefix, after, delimiter)
	}
	for ; key != nil && bytes.HasPrefix(key, []byte(prefix)); key, data = cursor.Next() {
		if len(f.Objects)+len(f.Prefixes) == limit {
			f.More = true
			return f, nil
		}
		if folder, inside := folderOf(string(key), prefix, delimiter); inside {
			f.Last = folder
			f.Prefixes = append(f.Prefixes, f.Last)
			if key, _ = cursor.Seek(afterPrefix(f.Last)); key == nil {
				return f, nil
			}
			cursor.Prev() // the loop advances to the key just found
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

// seekAfter moves the cursor past the last key or folder of a page. A key that
// ends with the delimiter need not be a folder: the delimiter may begin in the prefix.
func seekAfter(cursor boltCursor, prefix, after, delimiter string) (key, data []byte) {
	if folder, inside := folderOf(after, prefix, delimiter); inside {
		return cursor.Seek(afterPrefix(folder))
	}
	return cursor.Seek(append([]byte(after), 0))
}

// folderOf returns the folder of the level below prefix that key is in, or is, and
// whether there is one.
func folderOf(key, prefix, delimiter string) (folder string, inside bool) {
	rest, below := strings.CutPrefix(key, prefix)
	i := strings.Index(rest, delimiter)
	if !below || i < 0 || delimiter == "" {
		return "", false
	}
	return key[:len(prefix)+i+len(delimiter)], true
}

// afterPrefix returns the first possible key after all keys that begin with
// prefix. Keys are UTF-8, which never contains the byte 0xff.
func afterPrefix(prefix string) []byte { return append([]byte(prefix), 0xff) }
