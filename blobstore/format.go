package blobstore

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"holdfast/internal/durable"
)

// formatVersion is the version that this program writes, and the newest that it reads.
const formatVersion = 1

const formatFile = "format"

// castagnoli is the CRC-32C table.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func formatLine(version int) string {
	text := fmt.Sprintf("holdfast blobstore %d", version)
	return fmt.Sprintf("%s %08x\n", text, crc32.Checksum([]byte(text), castagnoli))
}

// checkFormat checks the format file of the store in dir. The error matches fs.ErrNotExist if there is none.
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

// writeFormat makes dir, which must be empty, a blob store.
func writeFormat(fsys durable.FS, dir string) error {
	if err := mustBeEmpty(dir); err != nil {
		return err
	}
	return durable.Publish(fsys, filepath.Join(dir, formatFile), 0o600, durable.Bytes([]byte(formatLine(formatVersion))))
}

// mustBeEmpty refuses a directory with other content, before Open removes anything in it.
func mustBeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read blob store directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() != formatFile+durable.NewSuffix {
			return fmt.Errorf("%s is not a blob store, and not empty: it holds %q", dir, e.Name())
		}
	}
	return nil
}
