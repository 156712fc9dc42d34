package engine

import (
	"context"
	"errors"
	"fmt"
	"os"

	"holdfast/backup"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// BackupRestore begins to put the database back to what it was when the
// backup was made, and returns the operation at once. The restored files are
// built and recovered beside the running database, which is replaced only
// when they are known to work; a restore that fails leaves it as it was.
func (e *Engine) BackupRestore(call *model.Call, database, id string) (model.DatabaseOperation, error) {
	b, err := e.BackupGet(call, database, id)
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	if b.Status != model.BackupCompleted {
		return model.DatabaseOperation{}, model.Errorf(model.CodeForbidden,
			"this backup is %s; only a completed one can be restored", b.Status)
	}
	return e.beginSwitch(call, database, "restoring", func(db model.Database, op *model.DatabaseOperation) (stage, error) {
		op.Backup, op.Generation = b.ID, nextGeneration(db)
		return func(ctx context.Context) error { return e.unpackBackup(ctx, b, *op) }, nil
	})
}

// RecoveryUndo begins to bring back the data that the last restore replaced.
func (e *Engine) RecoveryUndo(call *model.Call, database string) (model.DatabaseOperation, error) {
	return e.beginSwitch(call, database, "undoing", func(db model.Database, op *model.DatabaseOperation) (stage, error) {
		if db.Replaced == nil || !e.clock().Before(db.Replaced.ExpiresAt) {
			return nil, model.Errorf(model.CodeForbidden, "there is no restore to undo: the data it replaced is kept for %s", e.cfg.ReplacedRetention)
		}
		op.Generation = db.Replaced.Generation
		return func(context.Context) error { return nil }, nil
	})
}

// stage makes the data directory that a database is to be switched to.
type stage func(context.Context) error

// nextGeneration returns a generation no data directory has.
func nextGeneration(db model.Database) int {
	if db.Replaced != nil {
		return max(db.Generation, db.Replaced.Generation) + 1
	}
	return db.Generation + 1
}

// beginSwitch claims the database, records the operation that prepare
// describes, and lets it run.
func (e *Engine) beginSwitch(
	call *model.Call, database, phase string, prepare func(model.Database, *model.DatabaseOperation) (stage, error),
) (model.DatabaseOperation, error) {
	db, release, err := e.claimWhole(call, database, "a restore")
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	op := e.newOperation(db, model.OperationRestore, phase)
	build, err := prepare(db, &op)
	if err == nil {
		err = e.change(call, func(tx *meta.Tx) error { return insertOperation(tx, op, model.DatabaseRestoring) })
	}
	if err != nil {
		release()
		return model.DatabaseOperation{}, err
	}
	e.work.Go(func() {
		defer release()
		defer e.done.drop(op.ID)
		e.runSwitch(e.ctx, db, op, build)
	})
	return op, nil
}

// runSwitch builds the new data directory, switches to it, and records how
// that ended. When the appliance is being stopped, the operation is left as it
// is: the next start rolls it back.
func (e *Engine) runSwitch(ctx context.Context, db model.Database, op model.DatabaseOperation, build stage) {
	err := build(ctx)
	if err == nil {
		err = e.prepareGeneration(ctx, db, op)
	}
	switched := err == nil
	if err == nil {
		err = e.switchGeneration(ctx, db, op)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	e.log.Error("restore failed", "database", db.ID, "operation", op.ID, "error", err)
	if err := e.undoSwitch(ctx, db, op, switched, err); err != nil {
		e.log.Error("roll back a restore", "database", db.ID, "operation", op.ID, "error", err)
	}
}

func (e *Engine) unpackBackup(ctx context.Context, b model.Backup, op model.DatabaseOperation) error {
	repo, err := e.repository(op.Database)
	if err != nil {
		return err
	}
	source, err := repo.Snapshot(b.ID)
	if err != nil {
		return err
	}
	defer source.Close()
	if source.Digest != b.ManifestBLAKE3 {
		return fmt.Errorf("the manifest of backup %s is another than when it was made: its BLAKE3 is %s, and was %s", b.ID, source.Digest, b.ManifestBLAKE3)
	}
	dir := e.dataDirectory(op.Database, op.Generation)
	err = backup.Restore(ctx, source, dir, backup.RestoreOptions{
		Progress: func(done, total int64) { e.done.set(op.ID, done, total) },
	})
	if err != nil {
		return err
	}
	return e.layWAL(op.Database, b.ID, dir)
}

// prepareGeneration brings the new data directory to consistency on a private
// socket, and gives it the roles and passwords the database has now.
func (e *Engine) prepareGeneration(ctx context.Context, db model.Database, op model.DatabaseOperation) error {
	if err := e.setPhase(op.ID, "recovering"); err != nil {
		return err
	}
	next := db
	next.Generation = op.Generation
	scratch, err := e.spec(ctx, next)
	if err != nil {
		return err
	}
	if err := e.issueCertificate(scratch.Dir); err != nil {
		return err
	}
	port, err := postgres.PrivatePort(e.socketDir)
	if err != nil {
		return err
	}
	scratch.ID, scratch.HBA.Allow = op.ID, nil
	// The settings stay: recovery may need no less of some than the server had
	// (max_prepared_transactions, max_locks_per_transaction).
	scratch.Config.Port, scratch.Config.Listen = port, nil
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := e.instances.Start(ctx, scratch); err != nil {
		e.states.drop(op.ID)
		return fmt.Errorf("recover restored data: %w", err)
	}
	provisionErr := e.provision(ctx, op.ID, db)
	return errors.Join(provisionErr, e.stopInstance(ctx, op.ID))
}

// switchGeneration replaces the running instance by one on the new data
// directory. The commit at the end is the switch; until then everything can
// be rolled back.
func (e *Engine) switchGeneration(ctx context.Context, db model.Database, op model.DatabaseOperation) error {
	if err := e.setPhase(op.ID, "switching"); err != nil {
		return err
	}
	if err := e.stopInstance(ctx, db.ID); err != nil {
		return err
	}
	next := db
	next.Generation = op.Generation
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if _, err := e.startInstance(startCtx, next); err != nil {
		return fmt.Errorf("start restored instance: %w", err)
	}
	superseded := db.Replaced
	now := e.clock()
	if err := e.endOperation(op, func(d *model.Database) {
		d.Generation = op.Generation
		d.Replaced = &model.Replaced{Generation: db.Generation, At: now, ExpiresAt: now.Add(e.cfg.ReplacedRetention)}
	}); err != nil {
		return err
	}
	if superseded != nil && superseded.Generation != op.Generation {
		if err := removeDirectory(e.dataDirectory(db.ID, superseded.Generation)); err != nil {
			e.log.Error("remove data replaced earlier", "database", db.ID, "error", err)
		}
	}
	return nil
}

// undoSwitch brings the database back to what it was before the operation;
// switched says that its instance was touched. When the old data does not
// start either, that is tried on in the background, and the operation ends: as
// long as it runs nobody can do anything about the database.
func (e *Engine) undoSwitch(
	ctx context.Context, db model.Database, op model.DatabaseOperation, switched bool, cause error,
) error {
	if switched {
		if err := e.stopInstance(ctx, db.ID); err != nil {
			return err
		}
		if err := e.startDatabase(ctx, db); err != nil {
			if ctx.Err() != nil {
				return err
			}
			cause = errors.Join(cause, err)
		}
	}
	removeErr := e.removeBuilt(db, op)
	_, err := e.concludeOperation(nil, op, cause)
	return errors.Join(removeErr, err)
}

// removeBuilt removes the data directory the operation was building. The one
// an undo goes back to is not the operation's to remove.
func (e *Engine) removeBuilt(db model.Database, op model.DatabaseOperation) error {
	if db.Replaced != nil && db.Replaced.Generation == op.Generation || db.Generation == op.Generation {
		return nil
	}
	if err := os.RemoveAll(e.dataDirectory(db.ID, op.Generation)); err != nil {
		return fmt.Errorf("remove unfinished data directory: %w", err)
	}
	return nil
}

// dropReplaced removes the data that a restore replaced.
func (e *Engine) dropReplaced(id string) error {
	release, err := e.claims.take(id, "a clean-up")
	if err != nil {
		return nil // busy: the next sweep is soon enough
	}
	defer release()
	db, err := e.record(id)
	if err != nil || db.Replaced == nil {
		return err
	}
	if err := e.meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Databases().Update(id, func(d *model.Database) error {
			d.Replaced = nil
			return nil
		})
		return err
	}); err != nil {
		return err
	}
	return removeDirectory(e.dataDirectory(id, db.Replaced.Generation))
}
