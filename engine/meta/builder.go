package meta

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"
)

// builderBatch is about how many bytes of changes a transaction of a Builder has.
const builderBatch = 4 << 20

// Builder makes a metadata file from chunks and changes. It is not safe for concurrent
// use.
type Builder struct {
	path  string
	bolt  *bbolt.DB
	tx    *bbolt.Tx
	bytes int64 // of changes in tx

	at     []string // the bucket of the last change
	bucket *bbolt.Bucket
}

// NewBuilder begins a file at path, and removes what is there. The caller calls
// Finish or Discard. Nobody can use the file before Finish has returned nil.
func NewBuilder(path string) (*Builder, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("rebuild metadata: %w", err)
	}
	bolt, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: lockTimeout, NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	})
	if err != nil {
		return nil, fmt.Errorf("rebuild metadata %s: %w", path, err)
	}
	return &Builder{path: path, bolt: bolt}, nil
}

// Load adds a chunk of DB.Chunks. The chunks of a file are loaded in their order, before
// any change.
func (b *Builder) Load(chunk []byte) error {
	err := readChunk(chunk, func(c Change) error { return b.apply(c, true) })
	if err != nil {
		return fmt.Errorf("load metadata: %w", err)
	}
	return nil
}

// Apply applies the changes of a transaction.
func (b *Builder) Apply(changes []Change) error {
	for _, c := range changes {
		if err := b.apply(c, false); err != nil {
			return fmt.Errorf("apply a change of the metadata: %w", err)
		}
	}
	return nil
}

// apply applies a change. In order means that keys come sorted.
func (b *Builder) apply(c Change, inOrder bool) (err error) {
	if len(c.Bucket) == 0 {
		return &CorruptError{Where: "of a change without a bucket"}
	}
	if err := b.begin(c.size()); err != nil {
		return err
	}
	switch bucket := b.find(c.Bucket); {
	case c.Deleted && bucket == nil:
		return nil
	case c.Deleted && len(c.Key) == 0:
		return b.deleteBucket(c.Bucket)
	case c.Deleted:
		return bucket.Delete(c.Key)
	case bucket == nil:
		if bucket, err = b.create(c.Bucket); err != nil {
			return err
		}
		fallthrough
	default:
		if inOrder {
			bucket.FillPercent = 0.9
		}
		if len(c.Key) == 0 {
			return setSequence(bucket, c.Value)
		}
		return bucket.Put(c.Key, c.Value)
	}
}

func setSequence(bucket *bbolt.Bucket, value []byte) error {
	n, ok := sequenceOf(value)
	if !ok {
		return &CorruptError{Where: "of a bucket"}
	}
	return bucket.SetSequence(n)
}

// begin begins a transaction, or another one when it has enough changes.
func (b *Builder) begin(bytes int64) (err error) {
	if b.tx != nil && b.bytes > builderBatch {
		if err := b.commit(); err != nil {
			return err
		}
	}
	if b.tx == nil {
		b.tx, err = b.bolt.Begin(true)
	}
	b.bytes += bytes
	return err
}

func (b *Builder) commit() error {
	if b.tx == nil {
		return nil
	}
	err := b.tx.Commit()
	b.tx, b.bytes, b.at, b.bucket = nil, 0, nil, nil
	return err
}

// find returns a bucket, nil if there is none.
func (b *Builder) find(path []string) *bbolt.Bucket {
	if b.bucket != nil && slices.Equal(b.at, path) {
		return b.bucket
	}
	bucket := b.tx.Cursor().Bucket()
	for _, name := range path {
		if bucket = bucket.Bucket([]byte(name)); bucket == nil {
			return nil
		}
	}
	b.at, b.bucket = slices.Clone(path), bucket
	return bucket
}

func (b *Builder) create(path []string) (bucket *bbolt.Bucket, err error) {
	bucket = b.tx.Cursor().Bucket()
	for _, name := range path {
		if bucket, err = bucket.CreateBucketIfNotExists([]byte(name)); err != nil {
			return nil, err
		}
	}
	return bucket, nil
}

// deleteBucket deletes a bucket that exists.
func (b *Builder) deleteBucket(path []string) error {
	b.at, b.bucket = nil, nil
	last := len(path) - 1
	return b.find(path[:last]).DeleteBucket([]byte(path[last]))
}

// Finish makes the file durable and checks it. Open opens it from then on. It returns a
// *NewerFormatError when a newer program wrote the content.
func (b *Builder) Finish() error {
	err := b.commit()
	if err == nil {
		err = b.bolt.View(checkContent)
	}
	if err == nil {
		err = b.bolt.Sync()
	}
	if err = errors.Join(err, b.close()); err == nil {
		err = Check(b.path)
	}
	if err == nil {
		err = syncDirectory(filepath.Dir(b.path))
	}
	if err != nil {
		return fmt.Errorf("rebuild metadata: %w", err)
	}
	return nil
}

// checkContent refuses content that no appliance has.
func checkContent(tx *bbolt.Tx) error {
	if tx.Bucket(formatBucket) == nil {
		return &CorruptError{Where: "format/version"}
	}
	return checkFormat(tx)
}

func (b *Builder) close() error {
	var err error
	if b.tx != nil {
		err = b.tx.Rollback()
		b.tx = nil
	}
	return errors.Join(err, b.bolt.Close())
}

// Discard removes the file. It may be called after Finish has failed.
func (b *Builder) Discard() error {
	return errors.Join(b.close(), os.Remove(b.path))
}
