package stream

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/zeebo/blake3"
)

const (
	pointMagic = "HFPT"
	// maxPoint bounds a checkpoint, which has about 50 bytes for each block.
	maxPoint = 8 << 20
)

// Checkpoint is the whole state by reference. Whoever has its entries replays the log
// after Replay; a change may be in both. Through (of its Point) is the least to
// replay.
type Checkpoint struct {
	Point
	Replay  uint64
	Hash    Hash // of the log object Replay
	Entries uint64
	Bytes   int64 // of the files that the entries refer to
	blocks  []Reference
}

func (c *Checkpoint) encode() []byte {
	b := appendMagic(nil, pointMagic)
	b = binary.LittleEndian.AppendUint64(b, uint64(nanos(c.Time)))
	b = binary.LittleEndian.AppendUint64(b, c.Through)
	b = binary.LittleEndian.AppendUint64(b, c.Replay)
	b = append(b, c.Hash[:]...)
	b = binary.AppendUvarint(b, c.Entries)
	b = binary.AppendUvarint(b, uint64(c.Bytes))
	b = binary.AppendUvarint(b, uint64(len(c.blocks)))
	for _, ref := range c.blocks {
		b = ref.append(b)
	}
	return b
}

// decodeCheckpoint reads the checkpoint that p names.
func decodeCheckpoint(b []byte, p Point) (*Checkpoint, error) {
	d := &decoder{b: b}
	d.magic(pointMagic)
	c := &Checkpoint{Point: p}
	if at, through := d.time("a time"), d.uint64("a number"); d.err == nil && (!at.Equal(p.Time) || through != p.Through) {
		d.fail("the name")
	}
	c.Replay, c.Hash = d.uint64("a number"), d.hash("a hash")
	if c.Replay > c.Through {
		d.fail("the position in the log")
	}
	c.Entries, c.Bytes = d.number("a count", maxEntries), int64(d.number("a size", 1<<62))
	for range d.number("a count", uint64(len(d.b)/36)) {
		c.blocks = append(c.blocks, d.reference())
		if d.err != nil {
			break
		}
	}
	return c, d.end("a checkpoint")
}

// Checkpoint reads the checkpoint of a point.
func (r *Repository) Checkpoint(ctx context.Context, p Point) (*Checkpoint, error) {
	b, err := r.get(ctx, p.key(), maxPoint)
	var c *Checkpoint
	if err == nil {
		c, err = decodeCheckpoint(b, p)
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %s: %w", p.key(), err)
	}
	return c, nil
}

// Catalog yields the entries of a checkpoint, sorted by owner, kind and name. It
// holds one block at a time.
func (r *Repository) Catalog(ctx context.Context, c *Checkpoint) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, ref := range c.blocks {
			entries, _, err := r.readBlock(ctx, ref)
			if err != nil {
				yield(Entry{}, fmt.Errorf("read the catalog of %s: %w", c.key(), err))
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

func (r *Repository) readBlock(ctx context.Context, ref Reference) ([]Entry, []byte, error) {
	if ref.parts() != 1 || ref.Size > 2*maxBlockPlain {
		return nil, nil, corrupt("a block of %d bytes", ref.Size)
	}
	b, err := r.get(ctx, ref.partKey(0), 2*maxBlockPlain)
	if err != nil {
		return nil, nil, err
	}
	if blake3.Sum256(b) != ref.Hash {
		return nil, nil, corrupt("%s is another file", ref.partKey(0))
	}
	return decodeBlock(r.zstd, b)
}

// blockRefs returns the references of a checkpoint's blocks by the hash of their
// content, so that the next checkpoint need not store them again.
func (r *Repository) blockRefs(ctx context.Context, c *Checkpoint) (map[Hash]Reference, error) {
	refs := map[Hash]Reference{}
	for _, ref := range c.blocks {
		_, block, err := r.readBlock(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("read the catalog of %s: %w", c.key(), err)
		}
		refs[blake3.Sum256(block)] = ref
	}
	return refs, nil
}
