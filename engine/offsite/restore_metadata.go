package offsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/durable"
)

// maxChunk is the largest chunk that is read: those that are written have at most 4 MiB
// and one entry.
const maxChunk = 64 << 20

// metadataRestorer builds the metadata from the chunks of a checkpoint and the log after it.
type metadataRestorer struct {
	files *stream.Repository
	dir   string
	zstd  *zstd.Decoder

	chunks map[string]stream.Reference // of the checkpoint
	named  map[string]stream.Reference // of the snapshot in the log that has begun, nil before one
	now    *metadataCopy               // the newest state that is consistent
	next   *metadataCopy               // that of a snapshot in the log, until it is consistent too
	made   int

	transaction uint64 // the one of which changes wait for its rest
	changes     []meta.Change
}

// metadataBuild begins the names of the files of which one becomes the metadata.
const metadataBuild = core.MetadataFile + ".restoring-"

// metadataCopy is a file that is being built. It is consistent after a transaction.
type metadataCopy struct {
	*meta.Builder
	path  string
	until uint64
}

// newMetadataRestorer returns the restorer of a data directory.
func newMetadataRestorer(files *stream.Repository, dir string) (*metadataRestorer, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxChunk))
	if err != nil {
		return nil, fmt.Errorf("restore metadata: %w", err)
	}
	return &metadataRestorer{files: files, dir: dir, zstd: decoder, chunks: map[string]stream.Reference{}}, nil
}

func (r *metadataRestorer) entry(ctx context.Context, e stream.Entry) error {
	if e.Name != metadataList {
		r.chunks[e.Name] = e.Ref
		return nil
	}
	list := e.Data
	if !e.Ref.IsZero() {
		var err error
		if list, err = r.read(ctx, e.Ref); err != nil {
			return fmt.Errorf("read the list of the metadata: %w", err)
		}
	}
	c, err := r.build(ctx, list, r.chunks)
	if err != nil {
		return err
	}
	return r.replace(c)
}

// replace makes a copy the newest state.
func (r *metadataRestorer) replace(c *metadataCopy) (err error) {
	if r.now != nil {
		err = r.now.Discard()
	}
	r.now = c
	return err
}

func (r *metadataRestorer) read(ctx context.Context, ref stream.Reference) ([]byte, error) {
	if ref.Size > maxChunk {
		return nil, fmt.Errorf("%w: %d bytes of metadata in one file", stream.ErrCorrupt, ref.Size)
	}
	file, err := r.files.Open(ctx, ref, 0, -1)
	if err != nil {
		return nil, err
	}
	content := bytes.NewBuffer(make([]byte, 0, ref.Size))
	_, err = io.Copy(content, file)
	return content.Bytes(), errors.Join(err, file.Close())
}

// build begins a copy with the chunks of a list.
func (r *metadataRestorer) build(ctx context.Context, list []byte, refs map[string]stream.Reference) (*metadataCopy, error) {
	c := &metadataCopy{path: filepath.Join(r.dir, fmt.Sprint(metadataBuild, r.made))}
	r.made++
	var err error
	if c.Builder, err = meta.NewBuilder(c.path); err != nil {
		return nil, err
	}
	if err := r.load(ctx, c, list, refs); err != nil {
		return nil, errors.Join(fmt.Errorf("restore metadata: %w", err), c.Discard())
	}
	return c, nil
}

func (r *metadataRestorer) load(ctx context.Context, c *metadataCopy, list []byte, refs map[string]stream.Reference) error {
	for hash := range slices.Chunk(list, len(stream.Hash{})) {
		if len(hash) < len(stream.Hash{}) {
			return fmt.Errorf("%w: a list of %d bytes", stream.ErrCorrupt, len(list))
		}
		name := stream.Hash(hash).String()
		ref, ok := refs[name]
		if !ok {
			return fmt.Errorf("%w: the chunk %s is missing", stream.ErrCorrupt, name)
		}
		content, err := r.read(ctx, ref)
		if err != nil {
			return err
		}
		chunk, err := r.zstd.DecodeAll(content, nil)
		if err != nil {
			return fmt.Errorf("%w: %w", stream.ErrCorrupt, err)
		}
		if err := c.Load(chunk); err != nil {
			return err
		}
	}
	return nil
}

func (r *metadataRestorer) frame(ctx context.Context, f stream.Frame) error {
	switch b := f.Body.(type) {
	case stream.File:
		if r.named != nil {
			r.named[b.Name] = b.Ref
		}
	case stream.Meta:
		if len(b.Changes) == 1 && len(b.Changes[0].Bucket) == 0 && string(b.Changes[0].Key) != string(metaContinues) {
			return r.mark(ctx, b.Transaction, b.Changes[0])
		}
		return r.apply(b)
	}
	return nil
}

// mark begins a snapshot of the log, or builds a copy of it.
func (r *metadataRestorer) mark(ctx context.Context, transaction uint64, c stream.MetaChange) error {
	r.changes = nil
	switch string(c.Key) {
	case string(metaBegin):
		r.named = map[string]stream.Reference{}
		return nil
	case string(metaSnapshot):
		return r.snapshot(ctx, transaction, c.Value)
	}
	return fmt.Errorf("%w: a change %q of the metadata", stream.ErrVersion, c.Key)
}

// snapshot builds what replaces the state. A snapshot that began before the first
// frame is older than the checkpoint, which was made after it.
func (r *metadataRestorer) snapshot(ctx context.Context, transaction uint64, list []byte) error {
	if r.named == nil {
		return nil
	}
	if err := r.drop(&r.next); err != nil {
		return err
	}
	c, err := r.build(ctx, list, r.named)
	if err != nil {
		return err
	}
	c.until, r.named, r.next = transaction, nil, c
	return r.promote(0)
}

// promote makes the next copy the newest state once it is consistent.
func (r *metadataRestorer) promote(transaction uint64) error {
	if r.next == nil || transaction < r.next.until {
		return nil
	}
	next := r.next
	r.next = nil
	return r.replace(next)
}

func (r *metadataRestorer) drop(c **metadataCopy) error {
	if *c == nil {
		return nil
	}
	err := (*c).Discard()
	*c = nil
	return err
}

// apply applies the changes of a transaction once all of them are there.
func (r *metadataRestorer) apply(m stream.Meta) error {
	if m.Transaction != r.transaction {
		r.transaction, r.changes = m.Transaction, nil
	}
	for _, c := range m.Changes {
		if len(c.Bucket) == 0 && string(c.Key) == string(metaContinues) {
			return nil
		}
		r.changes = append(r.changes, meta.Change{Bucket: c.Bucket, Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value), Deleted: c.Deleted})
	}
	changes := r.changes
	r.changes = nil
	to := r.now
	if r.next != nil {
		to = r.next
	}
	if to == nil {
		return errGap
	}
	if err := to.Apply(changes); err != nil {
		return err
	}
	return r.promote(m.Transaction)
}

// finish publishes the metadata.
func (r *metadataRestorer) finish(context.Context) error {
	defer r.zstd.Close()
	if r.now == nil {
		return fmt.Errorf("%w: it has no metadata", stream.ErrNoPoint)
	}
	if err := r.drop(&r.next); err != nil {
		return err
	}
	if err := r.now.Finish(); err != nil {
		return err
	}
	err := durable.OS{}.Rename(r.now.path, filepath.Join(r.dir, core.MetadataFile))
	if err == nil {
		err = durable.SyncDir(durable.OS{}, r.dir)
	}
	if err != nil {
		return fmt.Errorf("restore metadata: %w", err)
	}
	return nil
}
