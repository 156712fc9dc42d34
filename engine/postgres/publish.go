package postgres

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// publish makes path hold data, all of it or none, and durably: a temporary
// file beside it, fsync, rename, fsync of the directory. The callers hold the
// instance, so two publications of one path never meet.
func publish(path string, data []byte, mode fs.FileMode) error {
	if err := stage(path, data, mode); err != nil {
		return err
	}
	return settle(path)
}

// publishChanged is publish that leaves a file alone when it already holds
// data, and reports whether it wrote.
func publishChanged(path string, data []byte, mode fs.FileMode) (bool, error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return false, nil
	}
	return true, publish(path, data, mode)
}

// stage writes data, durably, to the temporary name of path.
func stage(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(staged(path), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	err = f.Chmod(mode) // the umask, and a leftover of another mode
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(staged(path))
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	return nil
}

// settle gives what stage wrote its names, and makes them durable. The paths
// lie in one directory.
func settle(paths ...string) error {
	for _, path := range paths {
		if err := os.Rename(staged(path), path); err != nil {
			return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
		}
	}
	return syncDir(filepath.Dir(paths[0]))
}

func staged(path string) string { return path + ".new" }

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// syncTree makes every file and name below dir durable.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("sync tree: %w", err)
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return nil
		}
		return syncDir(path) // opening to read is enough to sync a file too
	})
}
