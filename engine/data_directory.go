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
	if !absent(dir, metadataFile) || !used(dir) {
		return nil
	}
	missing := metadataFile + " is"
	if absent(dir, keyFile) {
		missing = metadataFile + " and " + keyFile + " are"
	}
	return fmt.Errorf("the data directory %s was in use before, and its %s missing: bring back what is missing, or name an empty directory",
		dir, missing)
}

// used reports whether something was ever kept in a data directory: the key or
// objects, which every start makes a place for after it made the key, or
// databases, their backups or copies of the metadata.
func used(dir string) bool {
	for _, trace := range []string{keyFile, "blobs/journal", "instances/db_*", "backups/db_*", metadataBackups + "/holdfast-*.db"} {
		if found, _ := fs.Glob(os.DirFS(dir), trace); len(found) > 0 {
			return true
		}
	}
	return false
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
