package meta

import (
	"bytes"
	"errors"
	"fmt"
)

// A dropped bucket is gone at once, but its objects are discarded a few at a time:
// a million in one transaction would take hundreds of megabytes and block every
// other change for seconds. Meanwhile droppedBucket maps the id of the dropped
// bucket to the key of the next object, and after those to the next row of the table
// of versions, which has a zero byte.
const (
	droppedBucket = "objects.dropped"
	dropBatch     = 1000
)

// Dropping reports whether objects of dropped buckets are waiting to be discarded.
func (tx *Tx) Dropping() bool {
	id, _ := tx.bolt.Bucket([]byte(droppedBucket)).Cursor().First()
	return id != nil
}

// DropBucket removes the bucket and every object in it. Later calls of ForgetBlobs
// discard the blobs after the first dropBatch.
func (tx *Tx) DropBucket(bucket string) error {
	if err := tx.Buckets().Delete(bucket); err != nil {
		return err
	}
	return tx.dropObjects(bucket)
}

func (tx *Tx) dropObjects(bucket string) error {
	if err := tx.BucketRestores().Delete(bucket); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	location := tx.locate(bucket)
	if location.keys == nil {
		return nil
	}
	first, _ := location.keys.Cursor().First()
	if first == nil && location.versions != nil {
		first, _ = location.versions.rows.Cursor().First()
	}
	if first == nil {
		return tx.removeObjects(bucket)
	}
	if err := tx.bolt.Bucket([]byte(droppedBucket)).Put([]byte(bucket), bytes.Clone(first)); err != nil {
		return fmt.Errorf("drop bucket: %w", err)
	}
	return tx.discardDropped()
}

// discardDropped discards up to dropBatch objects of dropped buckets.
func (tx *Tx) discardDropped() error {
	dropped := tx.bolt.Bucket([]byte(droppedBucket))
	for left := dropBatch; left > 0; {
		id, from := dropped.Cursor().First()
		if id == nil {
			return nil
		}
		bucket := string(id)
		count, next, err := tx.discardObjects(bucket, bytes.Clone(from), left)
		if err != nil {
			return err
		}
		left -= count
		if next == nil {
			if err := tx.removeObjects(bucket); err != nil {
				return err
			}
			continue
		}
		if err := dropped.Put([]byte(bucket), next); err != nil {
			return fmt.Errorf("drop bucket: %w", err)
		}
	}
	return nil
}

// discardObjects discards the blobs of up to limit versions, starting at the key or row
// from, and returns their number and the next one, nil at the end.
func (tx *Tx) discardObjects(bucket string, from []byte, limit int) (count int, next []byte, err error) {
	b := tx.bolt.Bucket([]byte(objectsBucket)).Bucket([]byte(bucket))
	tables := []*boltBucket{b.Bucket([]byte(objectKeys))}
	if versions := b.Bucket([]byte(objectVersions)); versions != nil {
		tables = append(tables, versions)
	}
	if bytes.IndexByte(from, 0) >= 0 {
		tables = tables[1:]
	}
	for _, table := range tables {
		if next, err = tx.discardRows(table, bucket, from, limit, &count); next != nil || err != nil {
			return count, next, err
		}
		from = nil
	}
	return count, nil, nil
}

func (tx *Tx) discardRows(table *boltBucket, bucket string, from []byte, limit int, count *int) (next []byte, err error) {
	cursor := table.Cursor()
	key, data := cursor.Seek(from)
	for ; key != nil && *count < limit; key, data = cursor.Next() {
		*count++
		object, err := decodeObject(bucket, data)
		if isDamaged(err) {
			continue // the reference to its bytes is unreadable
		}
		if err != nil {
			return nil, err
		}
		if err := tx.releaseBytes(object); err != nil {
			return nil, err
		}
	}
	return bytes.Clone(key), nil
}

// removeObjects removes the buckets of a dropped bucket's objects.
func (tx *Tx) removeObjects(bucket string) error {
	if err := tx.bolt.Bucket([]byte(droppedBucket)).Delete([]byte(bucket)); err != nil {
		return fmt.Errorf("remove objects: %w", err)
	}
	if err := tx.bolt.Bucket([]byte(objectsBucket)).DeleteBucket([]byte(bucket)); err != nil {
		return fmt.Errorf("remove objects: %w", err)
	}
	return nil
}
