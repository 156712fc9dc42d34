package meta

import (
	"bytes"
	"errors"
	"time"

	"holdfast/engine/model"
)

// Noncurrent is a part of the versions of a bucket that are not current, and of the delete markers, in the order of their
// keys.
type Noncurrent struct {
	Versions []NoncurrentVersion
	Last     string // where the next part begins
	More     bool
}

// NoncurrentVersion is a version that is not current, or a delete marker.
type NoncurrentVersion struct {
	model.Object
	// Alone means that it is a delete marker, and no other version of its key is left.
	Alone bool
}

// NoncurrentVersions returns up to limit versions that are not current of keys that begin with prefix, from the Last of an
// earlier part on, "" for the first. It leaves out what cannot be read, and returns that as an error beside the others.
func (tx *Tx) NoncurrentVersions(bucket, prefix, last string, limit int) (part Noncurrent, err error) {
	t := tx.locate(bucket).versions
	if t == nil {
		return part, nil
	}
	cursor := t.rows.Cursor()
	row, data := cursor.Seek([]byte(max(prefix, last)))
	if last != "" && string(row) == last {
		row, data = cursor.Next()
	}
	for ; bytes.HasPrefix(row, []byte(prefix)) && row != nil; row, data = cursor.Next() {
		if len(part.Versions) == limit {
			part.More = true
			return part, err
		}
		part.Last = string(row)
		object, damage := decodeObject(bucket, data)
		if damage != nil {
			err = errors.Join(err, damage)
			continue
		}
		part.Versions = append(part.Versions, NoncurrentVersion{Object: object, Alone: object.DeleteMarker && tx.isAlone(t, object)})
	}
	return part, err
}

// isAlone reports whether a delete marker is the only version of its key.
func (tx *Tx) isAlone(t *versionTable, marker model.Object) bool {
	if !marker.NoncurrentAt.IsZero() { // there is a later one
		return false
	}
	of := versionRow(marker.Key, "")
	cursor := t.rows.Cursor()
	first, _ := cursor.Seek(of)
	next, _ := cursor.Next()
	return bytes.Equal(first, versionRow(marker.Key, marker.Version)) && !bytes.HasPrefix(next, of)
}

// Unchanged returns a version from NoncurrentVersions as it is now, or ErrNotFound if it is not what it was. It reads all that
// ExpireVersion needs: damage to that is an error here, before anything is changed.
func (tx *Tx) Unchanged(v NoncurrentVersion) (model.Object, error) {
	found, err := tx.ObjectVersion(v.Bucket, v.Key, v.VersionID())
	if err != nil {
		return found, err
	}
	if found.Version != v.Version || !found.NoncurrentAt.Equal(v.NoncurrentAt) || v.Alone && !tx.isAlone(tx.locate(v.Bucket).versions, found) {
		return found, ErrNotFound
	}
	_, err = tx.LatestVersion(v.Bucket, v.Key)
	return found, err
}

// ExpireVersion removes a version that is Unchanged for good. Moments at which it was current can then not be restored any more.
// A delete marker alone moves to the trash instead while that has versions of its key: the marker says when they were deleted.
func (tx *Tx) ExpireVersion(v NoncurrentVersion, at time.Time) error {
	old, err := tx.DeleteVersion(v.Bucket, v.Key, v.VersionID(), at)
	switch {
	case err != nil:
		return err
	case !v.Alone:
		return tx.LoseHistory(v.Bucket, v.NoncurrentAt)
	case tx.TrashedObjects().HasAtLeast(ByKey, Key(v.Bucket, v.Key), 1):
		return tx.KeepDeleted(old, at)
	}
	return nil
}
