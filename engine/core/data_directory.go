package core

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// The files without which a data directory is worthless. The metadata are created
// first, the key second.
const (
	MetadataFile = "holdfast.db"
	KeyFile      = "secret.key"
)

// WebhookSecretFile has the key that webhooks are signed with, unless another file is
// configured.
const WebhookSecretFile = "webhook.secret"

// RefuseWithoutMetadata refuses a data directory that has lost its metadata. With
// new metadata, no record would refer to its databases and objects, and they would
// be removed.
func RefuseWithoutMetadata(dir string) error {
	if !Absent(dir, MetadataFile) || !used(dir) {
		return nil
	}
	missing := MetadataFile + " is"
	if Absent(dir, KeyFile) {
		missing = MetadataFile + " and " + KeyFile + " are"
	}
	return fmt.Errorf("the data directory %s was in use before, and its %s missing: bring back what is missing, or name an empty directory",
		dir, missing)
}

// used reports whether a data directory was ever used: it contains the key or the
// journal, which every start creates after the key, or databases, their backups or
// copies of the metadata.
func used(dir string) bool {
	for _, trace := range []string{KeyFile, "blobs/journal", "instances/db_*", "backups/db_*", MetadataBackups + "/holdfast-*.db"} {
		if found, _ := fs.Glob(os.DirFS(dir), trace); len(found) > 0 {
			return true
		}
	}
	return false
}

// refuseWithoutKey refuses a data directory that has lost the key that seals its
// passwords. A new key could open none of them.
func refuseWithoutKey(dir string, db *meta.DB) error {
	if !Absent(dir, KeyFile) {
		return nil
	}
	return db.View(func(tx *meta.Tx) error {
		return tx.Organizations().All(func(model.Organization) error {
			return fmt.Errorf("the data directory %s was in use before, and its %s is missing: bring that file back", dir, KeyFile)
		})
	})
}

func Absent(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return errors.Is(err, fs.ErrNotExist)
}

// QuarantineDir is the directory to which orphans are moved: data directories that
// no record names. A crash leaves none, but restoring an older holdfast.db does: it
// lacks the databases created since, and their files are the only copy.
const QuarantineDir = "quarantine"
