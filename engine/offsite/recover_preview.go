package offsite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
)

// preview returns the databases that are about to be brought back, and refuses names of others. Those that are newer than the
// checkpoint are only among them if a name asks for one.
func (r *firstPhase) preview(ctx context.Context, h *stream.History, c *stream.Checkpoint) ([]model.Database, error) {
	all, err := preview(ctx, r.connection.repository, c, nil)
	if err == nil && r.refuseUnknown(all) != nil {
		if all, err = preview(ctx, r.connection.repository, c, h.Frames(ctx, c, r.o.At)); err == nil {
			err = r.refuseUnknown(all)
		}
	}
	return all, err
}

// refuseUnknown refuses names of databases that there are not.
func (r *firstPhase) refuseUnknown(all []model.Database) error {
	var names []string
	for _, d := range all {
		if d.Trash == nil && !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	for _, list := range []struct {
		flag  string
		names []string
	}{{"only", r.o.Only}, {"first", r.o.First}} {
		for _, name := range list.names {
			if !slices.Contains(names, name) {
				return model.Invalid(list.flag, "the copy has no database %q, but %s", name, cmp.Or(strings.Join(names, ", "), "none"))
			}
		}
	}
	return nil
}

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
