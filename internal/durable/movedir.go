package durable

import (
	"fmt"
	"os"
	"path/filepath"
)

// MoveDir renames a directory, durably. It replaces nothing.
func MoveDir(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("move to %s: %w", to, os.ErrExist) // rename would replace an empty directory
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if err := SyncDir(OS{}, filepath.Dir(to)); err != nil {
		return err
	}
	if filepath.Dir(from) == filepath.Dir(to) {
		return nil
	}
	return SyncDir(OS{}, filepath.Dir(from))
}
