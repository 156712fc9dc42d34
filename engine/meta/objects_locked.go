package meta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"holdfast/engine/model"
)

// The versions of a bucket that were ever locked, in the order of the times until which
// they are, so that one look-up tells whether any still is. The table exists once a
// bucket has had one.
const objectLocks = "versions.locked" // lockRow → the key of the version

// lockRow returns the key of a version's row, nil if it was never locked. A hold sorts
// after every time.
func lockRow(o model.Object) []byte {
	switch {
	case o.Lock == nil || !o.Lock.Hold && o.Lock.Mode == "":
		return nil
	case o.Lock.Hold:
		return append(binary.BigEndian.AppendUint64(nil, math.MaxUint64), o.Version...)
	}
	return append(lockTime(o.Lock.Until), o.Version...)
}

// lockTime returns what the rows of locks begin with that last until a time.
func lockTime(until time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(until.UnixMilli(), 0)))
}

// indexLock replaces the row of a version whose lock was before.
func (tx *Tx) indexLock(before, after []byte, o model.Object) error {
	if before == nil && after == nil {
		return nil
	}
	rows, err := tx.bolt.Bucket([]byte(objectsBucket)).Bucket([]byte(o.Bucket)).CreateBucketIfNotExists([]byte(objectLocks))
	if err == nil && before != nil {
		err = rows.Delete(before)
	}
	if err == nil && after != nil {
		err = rows.Put(after, []byte(o.Key))
	}
	if err != nil {
		return fmt.Errorf("index lock: %w", err)
	}
	return nil
}

// LockedVersion returns a version of a bucket that has a hold or is retained at a time,
// or ErrNotFound.
func (tx *Tx) LockedVersion(bucket string, at time.Time) (model.Object, error) {
	location := tx.locate(bucket)
	if location.keys == nil {
		return model.Object{}, ErrNotFound
	}
	rows := tx.bolt.Bucket([]byte(objectsBucket)).Bucket([]byte(bucket)).Bucket([]byte(objectLocks))
	if rows == nil {
		return model.Object{}, ErrNotFound
	}
	cursor := rows.Cursor()
	for row, key := cursor.Seek(lockTime(at)); row != nil; row, key = cursor.Next() {
		o, err := location.find(bucket, string(key), string(row[8:]))
		if errors.Is(err, ErrNotFound) || err == nil && !o.Lock.Hold && !o.Lock.Retains(at) {
			continue // a damaged record was removed without its row, or it ends within this millisecond
		}
		return o, err
	}
	return model.Object{}, ErrNotFound
}
