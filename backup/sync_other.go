//go:build !linux

package backup

import (
	"os"

	"holdfast/internal/durable"
)

// sync makes everything below the directory durable.
func (t *tree) sync() error { return durable.SyncTree(t.dir.Name()) }

// beginSync does nothing: there is no counterpart to sync_file_range.
func beginSync(*os.File, int64, int64) {}
