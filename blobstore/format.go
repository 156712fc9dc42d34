package blobstore

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/internal/durable"
)

// formatVersion is what this program writes, and the newest it reads.
const formatVersion = 1

const (
	formatFile    = "format"
	formatNewFile = "format.new"
)

// castagnoli is CRC-32C's table, which the hash/crc32 package never changes.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func formatLine(version int) string {
	text := fmt.Sprintf("holdfast blobstore %d", version)
	return fmt.Sprintf("%s %08x\n", text, crc32.Checksum([]byte(text), castagnoli))
}

// checkFormat reads the format file of the store in dir. It returns an error
// matching fs.ErrNotExist when there is none.
func checkFormat(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, formatFile))
	if err != nil {
		return fmt.Errorf("read blob store format: %w", err)
	}
	var version int
	if _, err := fmt.Sscanf(string(text), "holdfast blobstore %d ", &version); err != nil {
		return fmt.Errorf("%s is not a blob store: unknown content in its format file", dir)
	}
	if version > formatVersion {
		return fmt.Errorf("blob store %s has format %d, and this program knows formats up to %d: use a newer holdfast",
			dir, version, formatVersion)
	}
	if string(text) != formatLine(version) {
		return fmt.Errorf("format file of blob store %s is damaged", dir)
	}
	return nil
}

// writeFormat makes dir, which must hold nothing else, a blob store.
func writeFormat(fsys durable.FS, dir string, root durable.Handle) error {
	if err := mustBeEmpty(dir); err != nil {
		return err
	}
	temp := filepath.Join(dir, formatNewFile)
	if err := fsys.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove unfinished blob store format: %w", err)
	}
	if err := writeFile(fsys, temp, formatLine(formatVersion)); err != nil {
		return fmt.Errorf("write blob store format: %w", err)
	}
	if err := fsys.Rename(temp, filepath.Join(dir, formatFile)); err != nil {
		return fmt.Errorf("publish blob store format: %w", err)
	}
	if err := root.Sync(); err != nil {
		return fmt.Errorf("sync blob store directory: %w", err)
	}
	return nil
}

// mustBeEmpty refuses a directory somebody uses for something else, before
// Open sweeps anything in it.
func mustBeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read blob store directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() != formatNewFile {
			return fmt.Errorf("%s is not a blob store, and not empty: it holds %q", dir, e.Name())
		}
	}
	return nil
}

func writeFile(fsys durable.FS, path, text string) error {
	f, err := fsys.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	return errors.Join(err, f.Sync(), f.Close())
}
