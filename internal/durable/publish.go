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

// NewSuffix ends the temporary name of a file that is being published. A file with this suffix is incomplete.
const NewSuffix = ".new"

// Publish atomically and durably replaces the content of path with what write writes: it writes a temporary file
// beside path, syncs it, renames it and syncs the directory. The caller must ensure that only one goroutine at a
// time publishes a path. After an error path has its old content or, if only the sync of the directory failed,
// possibly the new one.
func Publish(fsys FS, path string, mode fs.FileMode, write func(File) error) error {
	if err := stage(fsys, path, mode, write); err != nil {
		return err
	}
	if err := commit(fsys, path); err != nil {
		_ = fsys.Remove(path + NewSuffix)
		return err
	}
	return nil
}

// Bytes returns a function for Publish that writes the given parts.
func Bytes(parts ...[]byte) func(File) error {
	return func(f File) error {
		for _, part := range parts {
			if _, err := f.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
}

// WriteFile publishes data on the operating system's file system.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return Publish(OS{}, path, mode, Bytes(data))
}

// WriteStream is WriteFile for data that write writes.
func WriteStream(path string, mode fs.FileMode, write func(io.Writer) error) error {
	return Publish(OS{}, path, mode, func(f File) error { return write(f) })
}

// WriteFileIfChanged is WriteFile, but leaves a file that already has this data and mode unchanged. It syncs the
// directory in either case: an earlier attempt may have ended between renaming the file and syncing its name. It
// reports whether it wrote.
func WriteFileIfChanged(path string, data []byte, mode fs.FileMode) (bool, error) {
	return publishIfChanged(OS{}, path, data, mode)
}

func publishIfChanged(fsys FS, path string, data []byte, mode fs.FileMode) (bool, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode() == mode {
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
			return false, SyncDir(fsys, filepath.Dir(path))
		}
	}
	return true, Publish(fsys, path, mode, Bytes(data))
}

// Stage writes data durably to the temporary name of path.
func Stage(path string, data []byte, mode fs.FileMode) error {
	return stage(OS{}, path, mode, Bytes(data))
}

func stage(fsys FS, path string, mode fs.FileMode, write func(File) error) error {
	temp := path + NewSuffix
	// A leftover may belong to another user, or be a link to somewhere else.
	if err := fsys.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	f, err := fsys.Create(temp)
	if err != nil {
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	err = f.Chmod(mode)
	if err == nil {
		err = write(f)
	}
	if err == nil {
		err = syncHandle(f)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		_ = fsys.Remove(temp)
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	return nil
}

// Commit renames the files that Stage wrote to their final names, one after the other, and makes the names durable.
// There must be at least one path, and all must be in one directory.
func Commit(paths ...string) error { return commit(OS{}, paths...) }

func commit(fsys FS, paths ...string) error {
	for _, path := range paths {
		if err := fsys.Rename(path+NewSuffix, path); err != nil {
			return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
		}
	}
	return SyncDir(fsys, filepath.Dir(paths[0]))
}

// SyncTree makes every file and name below dir durable.
func SyncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("sync tree: %w", err)
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return nil
		}
		return SyncDir(OS{}, path) // also syncs files
	})
}
