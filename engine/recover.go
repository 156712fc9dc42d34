package engine

import (
	"context"
	"fmt"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// recover finishes or rolls back the operations that were running when the appliance last stopped, so that every
// operation on a database is either done or undone. It runs before anything else changes a database.
func (e *Engine) recover() error {
	if e.Databases.OlderMetadata {
		if err := e.recoverOlder(); err != nil {
			return fmt.Errorf("recover with older metadata: %w", err)
		}
	}
	databases, err := e.Databases.KeptDatabases()
	if err != nil {
		return err
	}
	for _, db := range databases {
		if err := e.recoverDatabase(db); err != nil {
			if err := e.Databases.MarkUnrecovered(db, err); err != nil {
				return err
			}
		}
	}
	if err := e.Recovery.ReconcileRepositories(); err != nil {
		return err
	}
	if err := e.Recovery.RecoverBackups(""); err != nil {
		return err
	}
	if err := e.Objects.RecoverUploads(e.Databases.OlderMetadata); err != nil {
		return fmt.Errorf("recover uploads: %w", err)
	}
	if err := e.Objects.BeginHistory(); err != nil {
		return fmt.Errorf("begin the history of buckets: %w", err)
	}
	if err := e.Recovery.RecoverExports(); err != nil {
		return err
	}
	if err := e.Recovery.RecoverVerifications(); err != nil {
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

func (e *Engine) recoverDatabase(db model.Database) error {
	ctx, cancel := context.WithTimeout(e.Core.Lifetime, e.Databases.Timeouts.Stop)
	defer cancel()
	switch {
	case db.Status == model.DatabaseCreating:
		return e.Databases.RollBackCreate(ctx, db)
	case db.Status == model.DatabaseImporting:
		return e.Imports.Recover(ctx, db)
	case db.Status == model.DatabaseDeleting:
		return e.Databases.ResumeDelete(ctx, db)
	case db.Sandbox: // its holder has disconnected
		return e.Databases.ClearSandbox(ctx, db)
	case db.Operation != "":
		return e.Databases.RecoverOperation(ctx, db)
	default:
		return nil
	}
}
