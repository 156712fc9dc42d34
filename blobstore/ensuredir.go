package blobstore

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// ensureDir makes the directory path, where it is missing, and its name
// durable.
func ensureDir(fsys fileSystem, path string) error {
	err := fsys.Mkdir(path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make blob store directory: %w", err)
	}
	// Also where it was there already: an earlier attempt may have ended
	// between making it and syncing its parent.
	return syncDir(fsys, filepath.Dir(path))
}

func syncDir(fsys fileSystem, path string) error {
	d, err := fsys.OpenDir(path)
	if err != nil {
		return fmt.Errorf("open directory to sync: %w", err)
	}
	err = d.Sync()
	if err := errors.Join(err, d.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", path, err)
	}
	return nil
}
