package repository

import (
	"errors"
	"fmt"

	"holdfast/internal/durable"
)

// noteSync returns err, and makes the repository read-only if err is a failed sync.
func (r *Repository) noteSync(err error) error {
	if errors.Is(err, durable.ErrSync) {
		r.fail(err)
	}
	return err
}

// syncDir makes the names in a directory durable.
func (r *Repository) syncDir(path string) error { return r.noteSync(durable.SyncDir(r.fs, path)) }

// sync syncs an open file or directory. A failure makes the repository read-only.
func (r *Repository) sync(h durable.Handle, path string) error {
	if err := h.Sync(); err != nil {
		err = fmt.Errorf("sync %s: %w", path, err)
		r.fail(err)
		return err
	}
	return nil
}
