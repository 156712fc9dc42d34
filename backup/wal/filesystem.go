package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"holdfast/internal/durable"
)

// newSuffix ends the names of files being written.
const newSuffix = ".new"

// publish makes path hold what write writes, all of it or what was there
// before, and durably.
func publish(fsys durable.FS, path string, write func(durable.File) error) error {
	temp := path + newSuffix
	err := writeDurably(fsys, temp, write)
	if err == nil {
		err = fsys.Rename(temp, path)
	}
	if err != nil {
		_ = fsys.Remove(temp)
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	if err := durable.SyncDir(fsys, filepath.Dir(path)); err != nil {
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	return nil
}

func writeDurably(fsys durable.FS, path string, write func(durable.File) error) error {
	if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(path)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func publishBytes(fsys durable.FS, path string, content ...[]byte) error {
	return publish(fsys, path, func(f durable.File) error {
		for _, part := range content {
			if _, err := f.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
}
