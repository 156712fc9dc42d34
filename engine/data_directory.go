package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// The files of a data directory without which the rest is worth nothing. The
// metadata is made first, the key second.
const (
	metadataFile = "holdfast.db"
	keyFile      = "secret.key"
)

// refuseWithoutMetadata refuses a data directory that has lost its metadata.
// With new metadata every database and object in it would belong to no record,
// and be removed.
func refuseWithoutMetadata(dir string) error {
	if !absent(dir, metadataFile) || absent(dir, keyFile) {
		return nil
	}
	return fmt.Errorf("the data directory %s was in use before, and its %s is missing: bring that file back, or name an empty directory",
		dir, metadataFile)
}

// refuseWithoutKey refuses a data directory that has lost the key its
// passwords are sealed with. With a new key none of them could be opened.
func refuseWithoutKey(dir string, db *meta.DB) error {
	if !absent(dir, keyFile) {
		return nil
	}
	return db.View(func(tx *meta.Tx) error {
		return tx.Organizations().All(func(model.Organization) error {
			return fmt.Errorf("the data directory %s was in use before, and its %s is missing: bring that file back", dir, keyFile)
		})
	})
}

func absent(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return errors.Is(err, fs.ErrNotExist)
}
