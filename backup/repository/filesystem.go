package repository

import (
	"errors"
	"fmt"

	"holdfast/internal/durable"
)

// Occupied returns how many bytes the repository's files occupy on disk.
func (r *Repository) Occupied() int64 { return r.footprint.Bytes() }

// syncDir makes the names in the directory path durable.
func (r *Repository) syncDir(path string) error {
	d, err := r.fs.OpenDir(path)
	if err != nil {
		return fmt.Errorf("open directory to sync: %w", err)
	}
	return errors.Join(r.sync(d, path), d.Close())
}

// sync syncs an open file or directory. A failure is for good.
func (r *Repository) sync(h durable.Handle, path string) error {
	if err := h.Sync(); err != nil {
		err = fmt.Errorf("sync %s: %w", path, err)
		r.fail(err)
		return err
	}
	return nil
}
