package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

var errImportInterrupted = model.Errorf(model.CodeConflict,
	"the appliance was stopped before the import was done; what was copied is removed and the name is free again: start the import anew")

// rollBackImport removes a database whose import ended with the appliance:
// nobody has used it, and the source is as it was.
func (e *Engine) rollBackImport(ctx context.Context, db model.Database) error {
	e.log.Warn("rolling back an import", "database", db.ID, "name", db.Name)
	if err := postgres.StopOrphan(ctx, e.dataDirectory(db.ID, db.Generation)); err != nil {
		return err
	}
	var records []model.Import
	if err := e.meta.View(func(tx *meta.Tx) (err error) {
		records, err = allUnder(tx.Imports(), db.ID)
		return err
	}); err != nil {
		return err
	}
	if len(records) != 1 {
		return fmt.Errorf("the database %s under import has %d imports", db.ID, len(records))
	}
	return e.forgetImport(db, records[0], errImportInterrupted)
}

// relayDir is where imports put their sockets, beside those of the instances.
func (e *Engine) relayDir() string { return filepath.Join(e.socketDir, "i") }

// makeRelayDir makes the directory anew: an import that was killed has left
// its socket.
func (e *Engine) makeRelayDir() error {
	if err := os.RemoveAll(e.relayDir()); err != nil {
		return fmt.Errorf("clear sockets of imports: %w", err)
	}
	if err := os.Mkdir(e.relayDir(), 0o700); err != nil {
		return fmt.Errorf("make directory for sockets of imports: %w", err)
	}
	return nil
}
