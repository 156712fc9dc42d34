//go:build !linux

package backup

import "os"

// beginSync does nothing: there is no counterpart to sync_file_range.
func beginSync(*os.File, int64, int64) {}
