package repository

import (
	"fmt"

	"holdfast/internal/durable"
)

// Link copies the repository to dir with hard links. dir must not exist and must be on the same file system. Link waits for
// a running Collect or Clean, and neither runs beside it, so that the copy has the packs that its indexes describe. The
// caller makes sure that no backup is being written or deleted.
func (r *Repository) Link(dir string) error {
	r.removal.RLock()
	defer r.removal.RUnlock()
	if err := durable.LinkTree(r.dir, dir); err != nil {
		return fmt.Errorf("link backup repository: %w", err)
	}
	return nil
}
