package imports

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

var errImportInterrupted = model.Errorf(model.CodeConflict,
	"the appliance was stopped before the import was done; what was copied is removed and the name is free again: start the import again")

// RollBackInterrupted removes a database whose import was interrupted when the
// appliance ended. The database was never open to clients, and the source is
// unchanged.
func (s *Service) RollBackInterrupted(ctx context.Context, db model.Database) error {
	s.core.Log.Warn("rolling back an import", "database", db.ID, "name", db.Name)
	if err := postgres.StopOrphan(ctx, s.databases.DataDirectory(db.ID, db.Generation)); err != nil {
		return err
	}
	records, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Import, error) { return core.AllUnder(tx.Imports(), db.ID) })
	if err != nil {
		return err
	}
	if len(records) != 1 {
		return fmt.Errorf("the database %s under import has %d imports", db.ID, len(records))
	}
	return s.rollBack(ctx, db, records[0], errImportInterrupted)
}

// relayDir returns the directory of the imports' sockets, next to the instances' sockets.
func (s *Service) relayDir() string { return filepath.Join(s.databases.SocketDir, "i") }

// MakeRelayDir replaces the directory, which may contain the sockets of interrupted imports.
func (s *Service) MakeRelayDir() error {
	if err := os.RemoveAll(s.relayDir()); err != nil {
		return fmt.Errorf("clear sockets of imports: %w", err)
	}
	if err := os.Mkdir(s.relayDir(), 0o700); err != nil {
		return fmt.Errorf("make directory for sockets of imports: %w", err)
	}
	return nil
}
