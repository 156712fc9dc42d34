package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/engine/importer"
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

// removeStrayRelays removes what an import that was killed has left beside
// the sockets.
func (e *Engine) removeStrayRelays() {
	left, _ := filepath.Glob(filepath.Join(e.socketDir, importer.RelayPrefix+"*"))
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			e.log.Warn("remove what an import has left", "path", dir, "error", err)
		}
	}
}
