package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/zeebo/blake3"
)

// Checkpoint stores a checkpoint. It calls collect, which stores the files that the
// store lacks and returns the whole state: what it contains is durable on the machine,
// at least up to the moment of the call. Then everything that the sources have is
// stored, and the checkpoint last. The entries are sorted in place. One call waits for
// another.
func (w *Writer) Checkpoint(ctx context.Context, collect func(context.Context) ([]Entry, error)) (Point, error) {
	w.checkpointing.Lock()
	defer w.checkpointing.Unlock()
	ctx, cancel := w.both(ctx)
	defer cancel()
	p, err := w.checkpoint(ctx, collect)
	if err != nil {
		return p, fmt.Errorf("store a checkpoint: %w", err)
	}
	return p, nil
}

func (w *Writer) checkpoint(ctx context.Context, collect func(context.Context) ([]Entry, error)) (Point, error) {
	w.mu.Lock()
	replay, covered := w.cut, w.logged
	w.mu.Unlock()
	entries, err := collect(ctx)
	if err != nil {
		return Point{}, err
	}
	c := &Checkpoint{Replay: replay.Log, Hash: replay.Hash, Entries: uint64(len(entries))}
	for _, e := range entries {
		c.Bytes += e.Ref.Size
	}
	now := time.Now()
	through, err := w.Flush(ctx)
	if err != nil {
		return Point{}, err
	}
	next, err := w.storeCatalog(ctx, c, entries)
	if err != nil {
		return Point{}, err
	}
	c.Point = w.nextPoint(through.Log, now)
	return c.Point, w.storePoint(ctx, c, covered, next)
}

// nextPoint returns a name after that of the point before, with a time after that of the log while the clock is behind it.
func (w *Writer) nextPoint(through uint64, now time.Time) Point {
	if least := w.least(); now.Round(0).Before(least) {
		now = least
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !now.After(w.point.Time) {
		now = w.point.Time.Add(1)
	}
	return Point{w.claim.Epoch, through, now.UTC().Round(0)}
}

// storeCatalog stores the blocks that the checkpoint before did not have.
func (w *Writer) storeCatalog(ctx context.Context, c *Checkpoint, entries []Entry) (map[Hash]Reference, error) {
	next := map[Hash]Reference{}
	for _, e := range entries {
		if len(e.Data) > MaxInline || len(e.Owner) > maxName || len(e.Kind) > maxName || len(e.Name) > maxName {
			return nil, fmt.Errorf("the entry %q, %q, %q is too large", e.Owner, e.Kind, e.Name)
		}
	}
	for _, block := range blocks(entries) {
		hash := blake3.Sum256(block)
		ref, ok := w.blocks[hash]
		if !ok {
			var err error
			if ref, err = w.storeBytes(ctx, w.repo.zstd.compressBlock(block)); err != nil {
				return nil, err
			}
		}
		next[hash] = ref
		c.blocks = append(c.blocks, ref)
	}
	return next, nil
}

// storePoint looks for later epochs right before it stores the checkpoint, which covers the first bytes of all that were logged.
func (w *Writer) storePoint(ctx context.Context, c *Checkpoint, covered int64, blocks map[Hash]Reference) error {
	err := w.persist(ctx, "look for another machine", func() error { return w.check(ctx) })
	if err == nil {
		err = w.put(ctx, c.key(), small(c.encode()))
	}
	if err != nil {
		return err
	}
	w.blocks = blocks
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point, w.covered = c.Point, covered
	w.follow(c.Time)
	w.counts.Points++
	return nil
}
