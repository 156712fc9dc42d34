package meta

import (
	"encoding/binary"

	"go.etcd.io/bbolt"
)

// boltTx, boltBucket and boltCursor are what this package uses of a bbolt transaction.
// Every change goes through them, and while a Capture exists, they record it. They have
// no method that would change the file without recording it.
type boltTx struct {
	tx   *bbolt.Tx
	redo *redo // nil when nothing is recorded
}

// Bucket returns a top-level bucket, nil if there is none.
func (t boltTx) Bucket(name []byte) *boltBucket {
	return wrapBucket(t.tx.Bucket(name), nil, name, t.redo)
}

// CreateBucketIfNotExists returns a top-level bucket.
func (t boltTx) CreateBucketIfNotExists(name []byte) (*boltBucket, error) {
	if b := t.Bucket(name); b != nil {
		return b, nil
	}
	bolt, err := t.tx.CreateBucketIfNotExists(name)
	return createdBucket(bolt, err, nil, name, t.redo)
}

// boltBucket is a bucket and, while changes are recorded, its place.
type boltBucket struct {
	bolt   *bbolt.Bucket
	redo   *redo
	parent *boltBucket
	name   string
	path   []string // nil until it is needed
}

func wrapBucket(bolt *bbolt.Bucket, parent *boltBucket, name []byte, r *redo) *boltBucket {
	switch {
	case bolt == nil:
		return nil
	case r == nil:
		return &boltBucket{bolt: bolt}
	}
	return &boltBucket{bolt: bolt, redo: r, parent: parent, name: string(name)}
}

func createdBucket(bolt *bbolt.Bucket, err error, parent *boltBucket, name []byte, r *redo) (*boltBucket, error) {
	if err != nil {
		return nil, err
	}
	b := wrapBucket(bolt, parent, name, r)
	b.record(nil, sequenceValue(0), false)
	return b, nil
}

// record records a change of the bucket's content, or without a key of itself.
func (b *boltBucket) record(key, value []byte, deleted bool) {
	if b.redo != nil {
		b.redo.add(b.pathOf(), key, value, deleted)
	}
}

func (b *boltBucket) pathOf() []string {
	if b.path == nil {
		if b.parent != nil {
			b.path = b.parent.pathOf()
		}
		b.path = append(b.path[:len(b.path):len(b.path)], b.name)
	}
	return b.path
}

func sequenceValue(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func sequenceOf(value []byte) (uint64, bool) {
	if len(value) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(value), true
}

// Bucket returns a nested bucket, nil if there is none.
func (b *boltBucket) Bucket(name []byte) *boltBucket {
	return wrapBucket(b.bolt.Bucket(name), b, name, b.redo)
}

// CreateBucketIfNotExists returns a nested bucket.
func (b *boltBucket) CreateBucketIfNotExists(name []byte) (*boltBucket, error) {
	if child := b.Bucket(name); child != nil {
		return child, nil
	}
	bolt, err := b.bolt.CreateBucketIfNotExists(name)
	return createdBucket(bolt, err, b, name, b.redo)
}

// DeleteBucket removes a nested bucket with all that is in it.
func (b *boltBucket) DeleteBucket(name []byte) error {
	child := b.Bucket(name)
	if err := b.bolt.DeleteBucket(name); err != nil {
		return err
	}
	child.record(nil, nil, true)
	return nil
}

// Get returns the value of a key, nil if there is none.
func (b *boltBucket) Get(key []byte) []byte { return b.bolt.Get(key) }

// Put sets the value of a key.
func (b *boltBucket) Put(key, value []byte) error {
	if err := b.bolt.Put(key, value); err != nil {
		return err
	}
	b.record(key, value, false)
	return nil
}

// Delete removes a key. A missing one is no error.
func (b *boltBucket) Delete(key []byte) error {
	if err := b.bolt.Delete(key); err != nil {
		return err
	}
	b.record(key, nil, true)
	return nil
}

// Sequence returns the number stored with the bucket.
func (b *boltBucket) Sequence() uint64 { return b.bolt.Sequence() }

// SetSequence changes the number stored with the bucket.
func (b *boltBucket) SetSequence(n uint64) error {
	if err := b.bolt.SetSequence(n); err != nil {
		return err
	}
	b.record(nil, sequenceValue(n), false)
	return nil
}

// AppendOnly tells bbolt that keys are only added at the end.
func (b *boltBucket) AppendOnly() { b.bolt.FillPercent = 0.95 }

// ForEach calls visit with every key and value in order.
func (b *boltBucket) ForEach(visit func(key, value []byte) error) error { return b.bolt.ForEach(visit) }

// Len returns the number of keys. It walks the pages.
func (b *boltBucket) Len() int { return b.bolt.Stats().KeyN }

// Cursor returns a cursor over the keys.
func (b *boltBucket) Cursor() boltCursor { return boltCursor{b.bolt.Cursor()} }

// boltCursor reads the keys of a bucket in order.
type boltCursor struct{ bolt *bbolt.Cursor }

// First moves to the first key; the key is nil where there is none, as of the others.
func (c boltCursor) First() (key, value []byte) { return c.bolt.First() }

// Last moves to the last key.
func (c boltCursor) Last() (key, value []byte) { return c.bolt.Last() }

// Next moves to the next key.
func (c boltCursor) Next() (key, value []byte) { return c.bolt.Next() }

// Prev moves to the previous key.
func (c boltCursor) Prev() (key, value []byte) { return c.bolt.Prev() }

// Seek moves to a key, or to the next one if it is missing.
func (c boltCursor) Seek(key []byte) (found, value []byte) { return c.bolt.Seek(key) }
