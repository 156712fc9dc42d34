// Package publish makes files appear whole and durable: a temporary file beside
// the final name, fsync, rename, fsync of the directory. It is the one way in
// which holdfast publishes files.
package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File makes path hold data, all of it or none, and durably: a temporary
// file beside it, fsync, rename, fsync of the directory. The callers hold the
// instance, so two publications of one path never meet.
func File(path string, data []byte, mode fs.FileMode) error {
	return Stream(path, mode, all(data))
}

// Stream is File for what write writes.
func Stream(path string, mode fs.FileMode, write func(io.Writer) error) error {
	if err := stage(path, mode, write); err != nil {
		return err
	}
	if err := Settle(path); err != nil {
		_ = os.Remove(staged(path))
		return err
	}
	return nil
}

// FileIfChanged is File that leaves a file alone when it already holds data
// with that mode, and reports whether it wrote.
func FileIfChanged(path string, data []byte, mode fs.FileMode) (bool, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode() == mode {
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
			return false, nil
		}
	}
	return true, File(path, data, mode)
}

// Stage writes data, durably, to the temporary name of path.
func Stage(path string, data []byte, mode fs.FileMode) error {
	return stage(path, mode, all(data))
}

func all(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

func stage(path string, mode fs.FileMode, write func(io.Writer) error) error {
	// A leftover may be another user's, or a link to somewhere else.
	if err := os.Remove(staged(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	f, err := os.OpenFile(staged(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	err = f.Chmod(mode) // the umask
	if err == nil {
		err = write(f)
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

// Settle gives what Stage wrote its names, one after the other, and makes them
// durable. The paths, one at least, lie in one directory.
func Settle(paths ...string) error {
	for _, path := range paths {
		if err := os.Rename(staged(path), path); err != nil {
			return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
		}
	}
	return Dir(filepath.Dir(paths[0]))
}

func staged(path string) string { return path + ".new" }

// Dir makes the names in dir durable.
func Dir(dir string) error {
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

// Tree makes every file and name below dir durable.
func Tree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("sync tree: %w", err)
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return nil
		}
		return Dir(path) // opening to read is enough to sync a file too
	})
}
