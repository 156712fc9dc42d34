package offsite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
)

// preview returns the databases of a checkpoint, without deleted ones, from its metadata alone: as they are after the frames
// of the log that follow it, nil for none. It writes them into a temporary directory.
func preview(ctx context.Context, r *stream.Repository, c *stream.Checkpoint, log iter.Seq2[stream.Frame, error]) (all []model.Database, err error) {
	dir, err := os.MkdirTemp("", "holdfast-recover-")
	if err != nil {
		return nil, fmt.Errorf("look at the metadata of the copy: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m, err := newMetadataRestorer(r, dir)
	if err != nil {
		return nil, err
	}
	for e, err := range r.Catalog(ctx, c) {
		if err == nil && e.Kind == KindMetadata {
			err = m.entry(ctx, e)
		}
		if err != nil {
			return nil, fmt.Errorf("look at the metadata of the copy: %w", err)
		}
	}
	if log != nil {
		if err := m.replay(ctx, log); err != nil {
			return nil, err
		}
	}
	if err := m.finish(ctx); err != nil {
		return nil, err
	}
	db, err := meta.Open(filepath.Join(dir, core.MetadataFile))
	if err != nil {
		return nil, err
	}
	err = db.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(d model.Database) error {
			if !d.Sandbox && d.Trash == nil {
				all = append(all, d)
			}
			return nil
		})
	})
	return all, errors.Join(err, db.Close())
}

// replay applies the frames of metadata in the log, up to damage.
func (m *metadataRestorer) replay(ctx context.Context, log iter.Seq2[stream.Frame, error]) error {
	for f, err := range log {
		if stream.Damaged(err) {
			return nil
		}
		if err == nil && kindOf(f) == KindMetadata {
			err = m.frame(ctx, f)
		}
		if err != nil {
			return fmt.Errorf("look at the newest metadata of the copy: %w", err)
		}
	}
	return nil
}
