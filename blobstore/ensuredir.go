package blobstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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

// lock takes the store in dir for this process, until the file is closed or
// the process ends.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open blob store directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("blob store %s is in use by another process", dir)
	}
	return nil, fmt.Errorf("lock blob store %s: %w", dir, err)
}
