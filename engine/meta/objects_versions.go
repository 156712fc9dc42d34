package meta

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"holdfast/engine/model"
)

// The versions of a key that are not current are in tables of their own, which exist
// once a bucket has kept one: so current objects cost the same with and without. A
// delete marker is never current, so it is there too while it is the latest version
// of its key. The order of the versions of a key is that of their ids.
const (
	objectVersions     = "versions"
	objectNullVersions = "versions.null"
)

// versionTable is the location of the versions of a bucket that are not current. The
// methods that read accept nil.
type versionTable struct {
	rows  *boltBucket // versionRow → the value of an object
	nulls *boltBucket // the key of a null version → its version
}

func findVersions(b *boltBucket) *versionTable {
	rows := b.Bucket([]byte(objectVersions))
	if rows == nil {
		return nil
	}
	return &versionTable{rows, b.Bucket([]byte(objectNullVersions))}
}

// makeVersions returns the table of versions of a bucket that has or had objects.
func (tx *Tx) makeVersions(bucket string) (*versionTable, error) {
	location := tx.locate(bucket)
	if location.versions != nil {
		return location.versions, nil
	}
	if _, _, err := tx.makeObjectBuckets(bucket); err != nil {
		return nil, err
	}
	b := tx.bolt.Bucket([]byte(objectsBucket)).Bucket([]byte(bucket))
	for _, name := range []string{objectVersions, objectNullVersions} {
		if _, err := b.CreateBucketIfNotExists([]byte(name)); err != nil {
			return nil, fmt.Errorf("make version bucket: %w", err)
		}
	}
	versions := findVersions(b)
	if tx.batch != nil {
		location := tx.locate(bucket)
		location.versions = versions
		tx.batch.locations[bucket] = location
	}
	return versions, nil
}

// versionRow returns the key of a version's row. Rows sort by key, then from the newest
// version to the oldest. No object key has a zero byte.
func versionRow(key, version string) []byte {
	row := append(append(make([]byte, 0, len(key)+1+len(version)), key...), 0)
	for i := range len(version) {
		row = append(row, ^version[i])
	}
	return row
}

// splitVersionRow returns the key and the version of a row.
func splitVersionRow(row []byte) (key, version string) {
	name, inverted, _ := bytes.Cut(row, []byte{0})
	raw := make([]byte, len(inverted))
	for i, c := range inverted {
		raw[i] = ^c
	}
	return string(name), string(raw)
}

func (t *versionTable) get(bucket, key, version string) (model.Object, error) {
	if t == nil {
		return model.Object{}, ErrNotFound
	}
	data := t.rows.Get(versionRow(key, version))
	if data == nil {
		return model.Object{}, ErrNotFound
	}
	return decodeObject(bucket, data)
}

// newest returns the newest version of a key in the table, or ErrNotFound.
func (t *versionTable) newest(bucket, key string) (model.Object, error) {
	if t == nil {
		return model.Object{}, ErrNotFound
	}
	from := versionRow(key, "")
	row, data := t.rows.Cursor().Seek(from)
	if !bytes.HasPrefix(row, from) {
		return model.Object{}, ErrNotFound
	}
	return decodeObject(bucket, data)
}

// put stores a version, or replaces its record.
func (t *versionTable) put(object model.Object) error {
	data, err := encodeObject(object)
	if err == nil {
		err = t.rows.Put(versionRow(object.Key, object.Version), data)
	}
	if err == nil && !object.Versioned {
		err = t.nulls.Put([]byte(object.Key), []byte(object.Version))
	}
	if err != nil {
		return fmt.Errorf("store version: %w", err)
	}
	return nil
}

func (t *versionTable) remove(object model.Object) error {
	err := t.rows.Delete(versionRow(object.Key, object.Version))
	if err == nil && !object.Versioned {
		err = t.nulls.Delete([]byte(object.Key))
	}
	if err != nil {
		return fmt.Errorf("remove version: %w", err)
	}
	return nil
}

// storeVersion adds a version that is not current, and counts it as such.
func (tx *Tx) storeVersion(object model.Object) error {
	t, err := tx.makeVersions(object.Bucket)
	if err != nil {
		return err
	}
	if err := t.put(object); err != nil {
		return err
	}
	at := object.NoncurrentAt
	if at.IsZero() {
		at = object.LastModified
	}
	return tx.countNoncurrent(object, 1, at)
}

// makeWay makes the versions of a key earlier ones, and removes a null version if the
// next one is another. It returns the removed version.
func (tx *Tx) makeWay(next model.Object) (removed model.Object, err error) {
	current, damaged, err := tx.currentObject(next.Bucket, next.Key)
	switch {
	case damaged || err == nil && !current.Versioned && !next.Versioned:
		return current, tx.removeCurrent(current, damaged, next.LastModified)
	case err == nil:
		err = tx.demote(current, next.LastModified)
	case errors.Is(err, ErrNotFound):
		err = tx.supersede(next.Bucket, next.Key, next.LastModified)
	}
	if err != nil || next.Versioned {
		return removed, err
	}
	return tx.removeNull(next.Bucket, next.Key, next.LastModified)
}

// demote makes the current object an earlier version.
func (tx *Tx) demote(current model.Object, at time.Time) error {
	keys, ages := tx.objectBuckets(current.Bucket)
	if err := keys.Delete([]byte(current.Key)); err != nil {
		return fmt.Errorf("remove object: %w", err)
	}
	if err := ages.remove([]byte(current.Version), []byte(current.Key)); err != nil {
		return err
	}
	current.NoncurrentAt = at
	return tx.storeVersion(current)
}

// supersede makes a delete marker that is the latest version of its key an earlier one.
func (tx *Tx) supersede(bucket, key string, at time.Time) error {
	t := tx.locate(bucket).versions
	marker, err := t.newest(bucket, key)
	if errors.Is(err, ErrNotFound) || err == nil && !marker.NoncurrentAt.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	marker.NoncurrentAt = at
	return t.put(marker)
}

// removeNull removes the null version of a key from the table of versions.
func (tx *Tx) removeNull(bucket, key string, at time.Time) (model.Object, error) {
	old, err := tx.nullVersion(bucket, key)
	if errors.Is(err, ErrNotFound) {
		return model.Object{}, nil
	}
	if err != nil {
		return old, err
	}
	return old, tx.dropVersion(old, at)
}

func (tx *Tx) nullVersion(bucket, key string) (model.Object, error) {
	t := tx.locate(bucket).versions
	if t == nil {
		return model.Object{}, ErrNotFound
	}
	version := t.nulls.Get([]byte(key))
	if version == nil {
		return model.Object{}, ErrNotFound
	}
	return t.get(bucket, key, string(version))
}

// dropVersion removes a version that is not current, with its bytes.
func (tx *Tx) dropVersion(old model.Object, at time.Time) error {
	if err := tx.locate(old.Bucket).versions.remove(old); err != nil {
		return err
	}
	if err := errors.Join(tx.releaseBytes(old), tx.indexLock(lockRow(old), nil, old)); err != nil {
		return err
	}
	if err := tx.countNoncurrent(old, -1, at); err != nil {
		return err
	}
	return tx.countObject(old, -1, at)
}

// DeleteVersion removes the version of a key with that id for good and returns it, or
// ErrNotFound. If it was the latest, the one before is the latest again.
func (tx *Tx) DeleteVersion(bucket, key, id string, at time.Time) (model.Object, error) {
	old, err := tx.ObjectVersion(bucket, key, id)
	if err != nil {
		return old, err
	}
	if current, err := tx.Object(bucket, key); err == nil && current.Version == old.Version {
		_, err = tx.DeleteObject(bucket, key, at)
		return old, errors.Join(err, tx.promote(bucket, key, at))
	}
	return old, errors.Join(tx.dropVersion(old, at), tx.promote(bucket, key, at))
}

// promote makes the newest version of a key the latest, if it has no current object.
func (tx *Tx) promote(bucket, key string, at time.Time) error {
	if _, err := tx.Object(bucket, key); !errors.Is(err, ErrNotFound) {
		return nil
	}
	t := tx.locate(bucket).versions
	newest, err := t.newest(bucket, key)
	if errors.Is(err, ErrNotFound) || err == nil && newest.NoncurrentAt.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	if err := t.remove(newest); err != nil {
		return err
	}
	newest.NoncurrentAt = time.Time{}
	if newest.DeleteMarker {
		return t.put(newest)
	}
	if err := tx.countNoncurrent(newest, -1, at); err != nil {
		return err
	}
	return tx.storeObject(newest)
}

// LatestVersion returns the latest version of a key: the current object, or a delete
// marker; otherwise ErrNotFound.
func (tx *Tx) LatestVersion(bucket, key string) (model.Object, error) {
	current, err := tx.Object(bucket, key)
	if !errors.Is(err, ErrNotFound) {
		return current, err
	}
	return tx.locate(bucket).versions.newest(bucket, key)
}

// ObjectVersion returns the version of a key with that id, or ErrNotFound.
func (tx *Tx) ObjectVersion(bucket, key, id string) (model.Object, error) {
	current, err := tx.Object(bucket, key)
	if err == nil && current.VersionID() == id || err != nil && !errors.Is(err, ErrNotFound) {
		return current, err
	}
	if id == model.NullVersion {
		return tx.nullVersion(bucket, key)
	}
	found, err := tx.locate(bucket).versions.get(bucket, key, id)
	if err == nil && !found.Versioned {
		return model.Object{}, ErrNotFound
	}
	return found, err
}

// ChangeVersion changes what is recorded with a version, but not its bytes, or returns ErrNotFound.
func (tx *Tx) ChangeVersion(bucket, key, id string, change func(*model.Object) error) (model.Object, error) {
	object, err := tx.ObjectVersion(bucket, key, id)
	if err != nil {
		return object, err
	}
	before := lockRow(object)
	if err := change(&object); err != nil {
		return object, err
	}
	return object, errors.Join(tx.locate(bucket).rewrite(object), tx.indexLock(before, lockRow(object), object))
}

// PutBack stores a version where its id has its place among the others of its key. It
// returns ErrExists if it is a null version and another object is.
func (tx *Tx) PutBack(object model.Object, at time.Time) error {
	if err := tx.claimBytes(object); err != nil {
		return err
	}
	return tx.place(object, at)
}

// place is PutBack for a version whose bytes are claimed already.
func (tx *Tx) place(object model.Object, at time.Time) error {
	if !object.Versioned {
		if err := tx.clearNull(object.Bucket, object.Key, at); err != nil {
			return err
		}
	}
	if err := tx.countObject(object, 1, at); err != nil {
		return err
	}
	latest, err := tx.LatestVersion(object.Bucket, object.Key)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return err
	case latest.Version > object.Version:
		object.NoncurrentAt = at
		return errors.Join(tx.storeVersion(object), tx.indexLock(nil, lockRow(object), object))
	case latest.DeleteMarker:
		err = tx.supersede(object.Bucket, object.Key, at)
	default:
		err = tx.demote(latest, at)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	object.NoncurrentAt = time.Time{}
	return tx.storeLatest(object)
}

// clearNull removes a delete marker that is the null version of a key. It returns
// ErrExists if an object is.
func (tx *Tx) clearNull(bucket, key string, at time.Time) error {
	null, err := tx.ObjectVersion(bucket, key, model.NullVersion)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	case !null.DeleteMarker:
		return ErrExists
	}
	return errors.Join(tx.dropVersion(null, at), tx.promote(bucket, key, at))
}
