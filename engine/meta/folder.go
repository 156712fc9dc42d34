package meta

import (
	"bytes"
	"strings"

	"holdfast/engine/model"
)

// FolderEntry is an object, or where Object is nil a folder: what several keys
// have in common up to a slash.
type FolderEntry struct {
	Key    string // a folder's ends with a slash
	Object *model.Object
}

// Folder returns up to limit entries of the folder prefix in a bucket, by
// key, beginning behind the entry after ("" from the start), and whether there
// are more. It costs a look-up for each entry, however much lies in the
// folders of the folder.
func (tx *Tx) Folder(bucket, prefix, after string, limit int) ([]FolderEntry, bool, error) {
	keys, _ := tx.objectBuckets(bucket)
	if keys == nil {
		return nil, false, nil
	}
	var entries []FolderEntry
	cursor := keys.Cursor()
	key, data := cursor.Seek([]byte(prefix))
	if after != "" {
		key, data = cursor.Seek(behind(prefix, after))
	}
	for key != nil && bytes.HasPrefix(key, []byte(prefix)) {
		if len(entries) == limit {
			return entries, true, nil
		}
		name, _, nested := strings.Cut(string(key[len(prefix):]), "/")
		if nested {
			folder := prefix + name + "/"
			entries = append(entries, FolderEntry{Key: folder})
			key, data = cursor.Seek(behind(prefix, folder))
			continue
		}
		var object model.Object
		if err := decodeRecord("objects/"+bucket, data, &object); err != nil {
			return nil, false, err
		}
		entries = append(entries, FolderEntry{Key: object.Key, Object: &object})
		key, data = cursor.Next()
	}
	return entries, false, nil
}

// behind returns the first key after an entry of the folder prefix: for a
// folder, after all that begins with it. (The object of the folder's own name
// is in it, and none.)
func behind(prefix, entry string) []byte {
	bound := []byte(entry)
	if entry != prefix && strings.HasSuffix(entry, "/") {
		bound[len(bound)-1]++
		return bound
	}
	return append(bound, 0)
}
