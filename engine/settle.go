package engine

import (
	"context"
	"fmt"
	"slices"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// settle finishes or rolls back what was under way when the appliance last
// ended, so that every database is before or after each act, never between.
// It runs before anything else changes a database.
func (e *Engine) settle() error {
	if e.older {
		if err := e.settleOlder(); err != nil {
			return fmt.Errorf("settle with older metadata: %w", err)
		}
	}
	databases, err := e.keptDatabases()
	if err != nil {
		return err
	}
	for _, db := range databases {
		if err := e.settleDatabase(db); err != nil {
			if err := e.leaveUnsettled(db, err); err != nil {
				return err
			}
		}
	}
	if err := e.settleRepositories(); err != nil {
		return err
	}
	if err := e.settleBackups(); err != nil {
		return err
	}
	if err := e.settleUploads(); err != nil {
		return fmt.Errorf("settle uploads: %w", err)
	}
	if err := e.settleExports(); err != nil {
		return err
	}
	if err := e.settleProofs(); err != nil {
		return err
	}
	if err := e.makeRelayDir(); err != nil {
		return err
	}
	if err := e.putStraysAside(); err != nil {
		return err
	}
	return postgres.ClearSockets(e.socketDir)
}

func (e *Engine) settleDatabase(db model.Database) error {
	ctx, cancel := context.WithTimeout(e.ctx, e.waits.stop)
	defer cancel()
	switch {
	case db.Status == model.DatabaseCreating:
		return e.rollBackCreate(ctx, db)
	case db.Status == model.DatabaseImporting:
		return e.rollBackImport(ctx, db)
	case db.Status == model.DatabaseDeleting:
		return e.carryOnDelete(ctx, db)
	case db.Sandbox: // whoever held it was cut off
		return e.clearSandbox(ctx, db)
	case db.Operation != "":
		return e.settleOperation(ctx, db)
	default:
		return nil
	}
}

// unsettled is held, until the appliance ends, on a database that could not be
// settled: nobody may touch it, and it is not started. The others are.
const unsettled = "what a crash interrupted, and could not be settled when the appliance started,"

func (e *Engine) leaveUnsettled(db model.Database, cause error) error {
	if e.ctx.Err() != nil {
		return cause
	}
	e.log.Error("settle database", "database", db.ID, "name", db.Name, "error", cause)
	if _, err := e.claims.take(db.ID, unsettled); err != nil {
		return err
	}
	e.instanceChanged(db.ID, postgres.StateFailed, "what a crash interrupted could not be settled; restart the appliance to try again: "+cause.Error())
	return nil
}

// rollBackCreate removes a database that nobody was told of.
func (e *Engine) rollBackCreate(ctx context.Context, db model.Database) error {
	e.log.Warn("rolling back the creation of a database", "database", db.ID, "name", db.Name)
	if err := postgres.StopOrphan(ctx, e.dataDirectory(db.ID, db.Generation)); err != nil {
		return err
	}
	call := e.system(model.ActionDatabaseCreate, db.Organization, databaseResource(db))
	return e.forgetDatabase(ctx, call, db, errInterrupted)
}

// carryOnDelete finishes a delete.
func (e *Engine) carryOnDelete(ctx context.Context, db model.Database) error {
	e.log.Warn("carrying on with the deletion of a database", "database", db.ID, "name", db.Name)
	if err := postgres.StopOrphan(ctx, e.dataDirectory(db.ID, db.Generation)); err != nil {
		return err
	}
	call := e.system(model.ActionDatabaseDelete, db.Organization, databaseResource(db))
	_, err := e.finishDelete(ctx, call, db, db.Operation)
	return err
}

// settleOperation ends what ran on the database. A restore whose data is the
// database's already has nothing left to do but to say so; before, it is undone.
func (e *Engine) settleOperation(ctx context.Context, db model.Database) error {
	var op model.DatabaseOperation
	if err := e.meta.View(func(tx *meta.Tx) (err error) {
		op, err = tx.Operations().Get(db.Operation)
		return err
	}); err != nil {
		return err
	}
	if op.Generation == db.Generation {
		e.log.Warn("carrying on with a switch to restored data", "database", db.ID, "operation", op.ID, "type", op.Type)
		return e.endOperation(op)
	}
	e.log.Warn("rolling back an operation", "database", db.ID, "operation", op.ID, "type", op.Type, "phase", op.Phase)
	if op.Generation != 0 {
		if err := postgres.StopOrphan(ctx, e.dataDirectory(db.ID, op.Generation)); err != nil {
			return err
		}
		if err := e.backups.RemoveBuilt(db, op); err != nil {
			return err
		}
	}
	_, err := e.concludeOperation(e.rollBack(db, op), op, errInterrupted)
	return err
}

// rollBack is the appliance's call to take back an operation.
func (e *Engine) rollBack(db model.Database, op model.DatabaseOperation) *model.Call {
	call := e.system(model.ActionOperationRollBack, db.Organization, databaseResource(db))
	call.Note("operation", op.ID)
	call.Note("type", string(op.Type))
	return call
}

// settleBackups marks as failed what was not completed; settleRepositories
// then removes what is left of it. What may be complete, and could not be looked
// at, waits for the next start.
func (e *Engine) settleBackups() error {
	var unfinished []model.Backup
	err := e.meta.View(func(tx *meta.Tx) error {
		return tx.Backups().All(func(b model.Backup) error {
			if b.Status == model.BackupPending || b.Status == model.BackupRunning {
				unfinished = append(unfinished, b)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	unfinished = slices.DeleteFunc(unfinished, e.mayBeComplete)
	now := e.clock()
	return e.meta.Update(func(tx *meta.Tx) error {
		for _, b := range unfinished {
			if _, err := tx.Backups().Update(b.ID, func(b *model.Backup) error {
				b.Status, b.Error, b.Cut, b.CompletedAt = model.BackupFailed, errInterrupted.Message, true, &now
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// mayBeComplete reports whether a backup's manifest is there, or nobody can say.
func (e *Engine) mayBeComplete(b model.Backup) bool {
	repo, err := e.repository(b.Database)
	if err != nil {
		return true
	}
	stored, err := repo.Backups()
	return err != nil || slices.Contains(stored, b.ID)
}
