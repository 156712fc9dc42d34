package meta

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// A commit ends with a page that makes it part of the file, and with the sync of that page. If that sync fails, the
// commit is part of what every read of this process sees, and it is unknown whether it is on the disk. The kernel takes
// the page for written from then on, so the sync of a later commit does not write it, and that commit may reuse pages
// which the state on the disk still needs.

// ErrReadOnly means that the last commit could not be made durable. What is stored can be read, and no change is accepted
// until the file is opened again.
var ErrReadOnly = errors.New("the metadata are read-only")

// rewriteLastPages writes the pages that make commits part of the file again, with the content that they have, and syncs
// them. No transaction may be running.
func rewriteLastPages(bolt *bbolt.DB, file *os.File) error {
	pages := make([]byte, 2*bolt.Info().PageSize) // of the last commit and of the one before
	if _, err := file.ReadAt(pages, 0); err != nil {
		return fmt.Errorf("write the last commit again: %w", err)
	}
	if _, err := file.WriteAt(pages, 0); err != nil {
		return fmt.Errorf("write the last commit again: %w", err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("sync the last commit again: %w", err)
	}
	return nil
}

// makeDurable makes the last commit durable, whose sync failed. If that fails, too, it ends all changes and returns why.
// Otherwise it waits for the end of the readers that began before: bbolt has rolled the commit back, and takes the pages that
// it replaced for free, though these readers still need them. The caller holds capturing.
func (db *DB) makeDurable(cause error) error {
	if err := rewriteLastPages(db.bolt, db.file); err != nil {
		db.failed = fmt.Errorf("%w since a sync to disk failed (%w); check the disk, then start again", ErrReadOnly, errors.Join(cause, err))
		return db.failed
	}
	<-db.readers.sealed()
	return nil
}

// Durable returns nil once everything that a read saw before is durable, and an ErrReadOnly if it cannot be. What a read
// found to be unneeded may be removed only after that.
func (db *DB) Durable() error {
	db.capturing.Lock()
	defer db.capturing.Unlock()
	return db.failed
}
