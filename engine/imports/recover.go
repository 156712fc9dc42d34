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

// Recover rolls back an import that was interrupted when the appliance ended, unless its database follows the source:
// Resume goes on with that.
func (s *Service) Recover(ctx context.Context, db model.Database) error {
	record, err := s.importOf(db)
	if err != nil {
		return err
	}
	cause, err := s.endsNow(db, record)
	if cause == nil || err != nil {
		return err
	}
	return s.rollBackInterrupted(ctx, db, record, cause)
}

// importOf returns the import that fills a database.
func (s *Service) importOf(db model.Database) (model.Import, error) {
	records, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Import, error) { return core.AllUnder(tx.Imports(), db.ID) })
	if err != nil {
		return model.Import{}, err
	}
	if len(records) != 1 {
		return model.Import{}, fmt.Errorf("the database %s under import has %d imports", db.ID, len(records))
	}
	return records[0], nil
}

// rollBackInterrupted removes a database whose import was interrupted when the
// appliance ended. The database was never open to clients, and the source is
// unchanged, except for the slot of an import that was to follow. The rollback forgets
// the source's password, so its record says that the slot may remain, until that is
// known: the appliance may end before the slot is dropped.
func (s *Service) rollBackInterrupted(ctx context.Context, db model.Database, record model.Import, cause error) error {
	s.core.Log.Warn("rolling back an import", "database", db.ID, "name", db.Name)
	if err := postgres.KillOrphan(ctx, s.databases.Majors.Find, s.databases.DataDirectory(db.ID, db.Generation)); err != nil {
		return err
	}
	if record.Follow == nil || record.Follow.SourceURL == nil {
		return s.rollBack(ctx, db, record, cause, "")
	}
	if err := s.rollBack(ctx, db, record, cause, slotMayRemain(record.Follow.Slot)); err != nil {
		return err
	}
	s.dropLeftSlot(record, cause)
	return nil
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
