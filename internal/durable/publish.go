package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile makes path hold data, durably and all of it or none: it writes a
// temporary file beside path, syncs it, renames it and syncs the directory. The
// caller ensures that only one goroutine at a time publishes a path.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return WriteStream(path, mode, all(data))
}

// WriteStream is WriteFile for the data that write writes.
func WriteStream(path string, mode fs.FileMode, write func(io.Writer) error) error {
	if err := stage(path, mode, write); err != nil {
		return err
	}
	if err := Commit(path); err != nil {
		_ = os.Remove(staged(path))
		return err
	}
	return nil
}

// WriteFileIfChanged is WriteFile, except that it leaves a file that already holds
// data with that mode unchanged. It reports whether it wrote.
func WriteFileIfChanged(path string, data []byte, mode fs.FileMode) (bool, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode() == mode {
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
			return false, nil
		}
	}
	return true, WriteFile(path, data, mode)
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

// Commit renames what Stage wrote to its final names, one after the other, and
// makes the names durable. The paths, at least one, are in one directory.
func Commit(paths ...string) error {
	for _, path := range paths {
		if err := os.Rename(staged(path), path); err != nil {
			return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
		}
	}
	return SyncDir(OS{}, filepath.Dir(paths[0]))
}

func staged(path string) string { return path + ".new" }

// SyncTree makes every file and name below dir durable.
func SyncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("sync tree: %w", err)
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return nil
		}
		return SyncDir(OS{}, path) // syncs a file too
	})
}
