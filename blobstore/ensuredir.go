package blobstore

import (
	"fmt"

	"holdfast/internal/durable"
)

// ensureDir makes the directory path, where it is missing, and its name
// durable.
func ensureDir(fsys durable.FS, path string) error {
	if err := durable.EnsureDir(fsys, path); err != nil {
		return fmt.Errorf("make blob store directory: %w", err)
	}
	return nil
}
