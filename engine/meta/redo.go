package meta

// Change is one change of the file. It sets or deletes a key of a bucket. Without a
// key, it makes the bucket and sets its sequence (8 bytes, big-endian), or deletes the
// bucket with all that is in it. To apply a sequence of changes again, all of them
// and in order, has no effect.
type Change struct {
	Bucket  []string // path
	Key     []byte
	Value   []byte
	Deleted bool
}

// changeOverhead is about what a recorded change takes besides its bytes.
const changeOverhead = 96

// MaxChange is the largest change that is recorded. A larger one needs a new snapshot.
const MaxChange = 2 << 20

func (c Change) size() int64 { return int64(len(c.Key)+len(c.Value)) + changeOverhead }

// redo records the changes of a transaction.
type redo struct {
	changes []Change
	bytes   int64
	limit   int64
	over    bool // it was too much
}

// add records a change. It copies key and value: both are the caller's or bbolt's.
func (r *redo) add(bucket []string, key, value []byte, deleted bool) {
	size := len(key) + len(value)
	if r.bytes += int64(size) + changeOverhead; r.bytes > r.limit || size > MaxChange {
		r.over, r.changes = true, nil
	}
	if r.over {
		return
	}
	c := Change{Bucket: bucket, Deleted: deleted}
	copied := append(append(make([]byte, 0, size), key...), value...)
	c.Key, c.Value = copied[:len(key):len(key)], copied[len(key):]
	r.changes = append(r.changes, c)
}
