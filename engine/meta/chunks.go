package meta

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"iter"
	"slices"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// A chunk is a part of the file's content in the order of its keys. It ends after a
// key whose hash says so, so a change of one key changes one chunk, or two where
// it moves an end. DESIGN.md has the format.
const chunkMagic = "HFMC"

// chunkSizes are the limits of the size of a chunk, and about its mean. A chunk with an
// entry that is larger ends after it.
type chunkSizes struct{ least, mean, most int }

func normalChunks() chunkSizes { return chunkSizes{256 << 10, 1 << 20, 4 << 20} }

// The entries of a chunk.
const (
	chunkPath     = 0 // what follows is in this bucket
	chunkKey      = 1
	chunkSequence = 2 // of the bucket; every bucket has one at its end
)

// Chunks yields the whole content of the file as chunks, each valid until the next.
// Each is read in a transaction of its own, so that a slow reader holds nothing up.
// Together they are consistent once every change is applied (Builder.Apply) that was
// committed since the call of Chunks.
func (db *DB) Chunks() iter.Seq2[[]byte, error] { return db.chunks(normalChunks()) }

func (db *DB) chunks(sizes chunkSizes) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		c := chunker{sizes: sizes}
		for done := false; !done; {
			err := db.view(func(tx *bbolt.Tx) error {
				done = c.next(tx)
				return nil
			})
			if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
				err = ErrClosed
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if len(c.chunk) > len(chunkMagic)+1 && !yield(c.chunk, nil) {
				return
			}
		}
	}
}

// chunker walks through the content, a chunk at a time.
type chunker struct {
	sizes chunkSizes
	chunk []byte

	// at is the last entry of the chunk before: the path of its bucket, and its key or,
	// if ended, the end of the bucket. Its bytes are copies.
	path  [][]byte
	key   []byte
	ended bool
	begun bool

	written  [][]byte // the path in the chunk
	pathHash uint32
}

// next makes the next chunk, and reports whether it is the last one.
func (c *chunker) next(tx *bbolt.Tx) (done bool) {
	c.chunk = append(append(c.chunk[:0], chunkMagic...), 1)
	c.written = nil
	return c.walk(tx.Cursor().Bucket(), nil, c.begun)
}

// walk adds what follows in a bucket. It returns false when the chunk is full.
// Resuming means that the last entry is in or below this bucket.
func (c *chunker) walk(b *bbolt.Bucket, path [][]byte, resuming bool) bool {
	cursor := b.Cursor()
	key, value := cursor.First()
	switch depth := len(path); {
	case resuming && len(c.path) > depth:
		name := c.path[depth]
		key, value = cursor.Seek(name)
		if child := b.Bucket(name); child != nil {
			if !c.walk(child, append(path, name), true) {
				return false
			}
			key, value = cursor.Next()
		}
	case resuming && c.ended:
		return true
	case resuming:
		if key, value = cursor.Seek(c.key); slices.Equal(key, c.key) {
			key, value = cursor.Next()
		}
	}
	for ; key != nil; key, value = cursor.Next() {
		if !c.add(b, path, key, value) {
			return false
		}
	}
	return len(path) == 0 || c.end(path, b.Sequence())
}

// add adds a key, or all of a nested bucket.
func (c *chunker) add(b *bbolt.Bucket, path [][]byte, key, value []byte) bool {
	if value == nil {
		if child := b.Bucket(key); child != nil {
			return c.walk(child, append(path, key), false)
		}
	}
	before := len(c.chunk)
	c.enter(path)
	c.chunk = append(c.chunk, chunkKey)
	c.chunk = appendSized(appendSized(c.chunk, key), value)
	return !c.full(path, key, false, before)
}

// end adds the end of a bucket.
func (c *chunker) end(path [][]byte, sequence uint64) bool {
	before := len(c.chunk)
	c.enter(path)
	c.chunk = binary.BigEndian.AppendUint64(append(c.chunk, chunkSequence), sequence)
	return !c.full(path, nil, true, before)
}

// enter writes the path unless it is that of the entry before.
func (c *chunker) enter(path [][]byte) {
	if c.written != nil && slices.EqualFunc(c.written, path, slices.Equal) {
		return
	}
	c.chunk = binary.AppendUvarint(append(c.chunk, chunkPath), uint64(len(path)))
	c.written = make([][]byte, 0, len(path))
	hash := fnv.New32a()
	for _, name := range path {
		c.chunk = appendSized(c.chunk, name)
		c.written = append(c.written, slices.Clone(name))
		_, _ = hash.Write(append(name[:len(name):len(name)], separator))
	}
	c.pathHash = hash.Sum32()
}

// full reports whether the chunk ends after an entry, and then keeps its place.
func (c *chunker) full(path [][]byte, key []byte, ended bool, before int) bool {
	if len(c.chunk) < c.sizes.least || len(c.chunk) < c.sizes.most && !c.chosen(key, len(c.chunk)-before) {
		return false
	}
	c.path = make([][]byte, 0, len(path))
	for _, name := range path {
		c.path = append(c.path, slices.Clone(name))
	}
	c.key, c.ended, c.begun = slices.Clone(key), ended, true
	return true
}

// chosen reports whether a chunk may end after an entry. The larger the entry is, the
// likelier it is.
func (c *chunker) chosen(key []byte, size int) bool {
	return uint64(c.hash(key))*uint64(c.sizes.mean-c.sizes.least) < uint64(size)<<32
}

// hash is FNV-1a of the path and the key, with its bits mixed.
func (c *chunker) hash(key []byte) uint32 {
	h := c.pathHash
	for _, b := range key {
		h = (h ^ uint32(b)) * 16777619
	}
	h = (h ^ h>>16) * 0x7feb352d
	h = (h ^ h>>15) * 0x846ca68b
	return h ^ h>>16
}

func appendSized(b, bytes []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(bytes))), bytes...)
}

// readChunk calls use with each entry of a chunk, as the change that makes it. What
// it gets shares memory with the chunk.
func readChunk(chunk []byte, use func(Change) error) error {
	d := &chunkReader{rest: chunk}
	if string(d.take(len(chunkMagic))) != chunkMagic || d.number() != 1 {
		return d.damaged()
	}
	var path []string
	for len(d.rest) > 0 && !d.bad {
		c := Change{}
		switch d.number() {
		case chunkPath:
			path = d.path()
			continue
		case chunkKey:
			c.Key, c.Value = d.sized(), d.sized()
			d.bad = d.bad || len(c.Key) == 0
		case chunkSequence:
			c.Value = d.take(8)
		default:
			d.bad = true
		}
		if c.Bucket = path; d.bad || len(path) == 0 {
			return d.damaged()
		}
		if err := use(c); err != nil {
			return err
		}
	}
	if d.bad {
		return d.damaged()
	}
	return nil
}

type chunkReader struct {
	rest []byte
	bad  bool
}

func (d *chunkReader) damaged() error { return &CorruptError{Where: "of a chunk"} }

func (d *chunkReader) take(n int) (b []byte) {
	if n < 0 || n > len(d.rest) {
		d.rest, d.bad = nil, true
		return nil
	}
	b, d.rest = d.rest[:n:n], d.rest[n:]
	return b
}

func (d *chunkReader) number() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.rest, d.bad = nil, true
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *chunkReader) sized() []byte {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.rest, d.bad = nil, true
		return nil
	}
	return d.take(int(n))
}

func (d *chunkReader) path() (path []string) {
	n := d.number()
	for range min(n, uint64(len(d.rest))) {
		path = append(path, string(d.sized()))
	}
	d.bad = d.bad || uint64(len(path)) != n
	return path
}
