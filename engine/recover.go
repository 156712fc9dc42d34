package engine

import (
	"context"
	"fmt"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// settle finishes or rolls back what was under way when the appliance last
// ended, so that every database is before or after each act, never between.
// It runs before anything else changes a database.
func (e *Engine) settle() error {
	if e.Databases.OlderMetadata {
		if err := e.settleOlder(); err != nil {
			return fmt.Errorf("settle with older metadata: %w", err)
		}
	}
	databases, err := e.Databases.KeptDatabases()
	if err != nil {
		return err
	}
	for _, db := range databases {
		if err := e.settleDatabase(db); err != nil {
			if err := e.Databases.MarkUnrecovered(db, err); err != nil {
				return err
			}
		}
	}
	if err := e.Recovery.SettleRepositories(); err != nil {
		return err
	}
	if err := e.Recovery.SettleBackups(); err != nil {
		return err
	}
	if err := e.Objects.SettleUploads(); err != nil {
		return fmt.Errorf("settle uploads: %w", err)
	}
	if err := e.Recovery.SettleExports(); err != nil {
		return err
	}
	if err := e.Recovery.SettleProofs(); err != nil {
		return err
	}
	if err := e.Imports.MakeRelayDir(); err != nil {
		return err
	}
	if err := e.Databases.QuarantineOrphans(); err != nil {
		return err
	}
	return postgres.ClearSockets(e.Databases.SocketDir)
}

func (e *Engine) settleDatabase(db model.Database) error {
	ctx, cancel := context.WithTimeout(e.Core.Lifetime, e.Databases.Timeouts.Stop)
	defer cancel()
	switch {
	case db.Status == model.DatabaseCreating:
		return e.Databases.RollBackCreate(ctx, db)
	case db.Status == model.DatabaseImporting:
		return e.Imports.RollBackImport(ctx, db)
	case db.Status == model.DatabaseDeleting:
		return e.Databases.ResumeDelete(ctx, db)
	case db.Sandbox: // whoever held it was cut off
		return e.Databases.ClearSandbox(ctx, db)
	case db.Operation != "":
		return e.Databases.RecoverOperation(ctx, db)
	default:
		return nil
	}
}
