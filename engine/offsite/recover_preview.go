package offsite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
)

// preview returns the databases of a checkpoint, from its metadata alone. It writes them into a temporary directory.
func preview(ctx context.Context, r *stream.Repository, c *stream.Checkpoint) (all []model.Database, err error) {
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
