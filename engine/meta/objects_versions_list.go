package meta

import (
	"bytes"

	"holdfast/engine/model"
)

// Version is a version of a key in a list.
type Version struct {
	model.Object
	// Latest means that no other version of the key is newer.
	Latest bool
}

// VersionFolder is one level of a bucket with all versions: a page of them in the order
// of their keys, the newest of each key first, and the folders that contain others.
type VersionFolder struct {
	Versions []Version
	// Prefixes are the folders, each ending with the delimiter.
	Prefixes []string
	// LastKey and LastVersion are the last version of this page; of a folder, LastVersion is "".
	LastKey, LastVersion string
	More                 bool
}

// ListVersions is ListFolder for all versions. It starts after the version afterVersion
// of afterKey, or after all versions of afterKey if afterVersion is "".
func (tx *Tx) ListVersions(bucket, prefix, delimiter, afterKey, afterVersion string, limit int) (VersionFolder, error) {
	return listVersions(tx.locate(bucket), bucket, prefix, delimiter, afterKey, afterVersion, limit)
}

// ListKept is ListVersions without folders, including buckets in the trash.
func (tx *Tx) ListKept(bucket, afterKey, afterVersion string, limit int) (VersionFolder, error) {
	return listVersions(tx.keptObjects(bucket), bucket, "", "", afterKey, afterVersion, limit)
}

func listVersions(location objectLocation, bucket, prefix, delimiter, afterKey, afterVersion string, limit int) (VersionFolder, error) {
	var f VersionFolder
	if location.keys == nil {
		return f, nil
	}
	w := &versionWalk{bucket: bucket, keys: location.keys.Cursor()}
	if location.versions != nil {
		rows := location.versions.rows.Cursor()
		w.rows = &rows
	}
	w.start(prefix, delimiter, afterKey, afterVersion)
	for {
		key, ok := w.next()
		if !ok || !bytes.HasPrefix(key, []byte(prefix)) {
			return f, nil
		}
		if len(f.Versions)+len(f.Prefixes) == limit {
			f.More = true
			return f, nil
		}
		if folder, inside := folderOf(string(key), prefix, delimiter); inside {
			f.Prefixes, f.LastKey, f.LastVersion = append(f.Prefixes, folder), folder, ""
			w.seek(afterPrefix(folder))
			continue
		}
		version, err := w.take()
		if err != nil {
			return f, err
		}
		f.Versions, f.LastKey, f.LastVersion = append(f.Versions, version), version.Key, version.Version
	}
}

// versionWalk merges the current objects of a bucket with its other versions.
type versionWalk struct {
	bucket string
	keys   boltCursor
	rows   *boltCursor // nil if there are none

	key, keyData []byte // nil at the end
	row, rowData []byte // likewise
	known        string // a key of which a newer version is known
}

// start moves to the first version of a page.
func (w *versionWalk) start(prefix, delimiter, afterKey, afterVersion string) {
	folder, inside := folderOf(afterKey, prefix, delimiter)
	switch {
	case afterKey == "" || afterKey < prefix:
		w.seek([]byte(prefix))
	case inside:
		w.seek(afterPrefix(folder))
	case afterVersion == "":
		w.seek(append([]byte(afterKey), 1)) // after the rows, which have a zero byte there
	default:
		w.seekVersion(afterKey, afterVersion)
	}
}

// seek moves to the first version at or after a key.
func (w *versionWalk) seek(key []byte) {
	w.key, w.keyData = w.keys.Seek(key)
	if w.rows != nil {
		w.row, w.rowData = w.rows.Seek(key)
	}
}

// seekVersion moves after a version of a key.
func (w *versionWalk) seekVersion(key, version string) {
	w.seek([]byte(key))
	if string(w.key) == key {
		if data := w.keyData; len(data) >= model.VersionLength && string(data[:model.VersionLength]) < version {
			return // the current object is older
		}
		w.known = key
		w.key, w.keyData = w.keys.Next()
	}
	if w.rows == nil {
		return
	}
	first := bytes.Clone(w.row)
	w.row, w.rowData = w.rows.Seek(append(versionRow(key, version), 0))
	if !bytes.Equal(first, w.row) {
		w.known = key
	}
}

// next returns the key of the next version.
func (w *versionWalk) next() (key []byte, ok bool) {
	rowKey, _, _ := bytes.Cut(w.row, []byte{0})
	switch {
	case w.key == nil && w.row == nil:
		return nil, false
	case w.row == nil || w.key != nil && bytes.Compare(w.key, rowKey) <= 0:
		return w.key, true
	}
	return rowKey, true
}

// take returns the next version and moves on.
func (w *versionWalk) take() (Version, error) {
	rowKey, _, _ := bytes.Cut(w.row, []byte{0})
	var data []byte
	key := string(rowKey)
	if w.row == nil || w.key != nil && bytes.Compare(w.key, rowKey) <= 0 {
		key, data = string(w.key), w.keyData
		w.key, w.keyData = w.keys.Next()
	} else {
		data = w.rowData
		w.row, w.rowData = w.rows.Next()
	}
	latest := w.known != key
	w.known = key
	object, err := decodeObject(w.bucket, data)
	return Version{object, latest}, err
}
