package engine

import (
	"context"
	"errors"
	"os"

	"holdfast/backup"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Rebuild makes the data directory of a database that was moved here with its
// backups alone, from the newest of them. It is a restore that replaces
// nothing. When it fails, or the appliance dies before the switch, the next
// start tries again.
func (e *Engine) Rebuild(ctx context.Context, db model.Database) error {
	op := e.newOperation(db, model.OperationRestore, "rebuilding")
	backups, err := e.restorableBackups(db.ID)
	if err == nil && len(backups) == 0 {
		err = model.Errorf(model.CodeConflict, "the database was moved here without files, and has no backup")
	}
	var plan RestorePlan
	if err == nil {
		plan, err = e.planBackup(ctx, backups[0])
	}
	if err == nil {
		err = e.roomForRestore(plan)
	}
	if err != nil {
		e.instanceChanged(db.ID, postgres.StateFailed, model.PublicMessage(err))
		return err
	}
	op.Backup, op.Generation = plan.Backup.ID, db.LastGeneration()+1
	if err := e.meta.Update(func(tx *meta.Tx) error { return insertOperation(tx, op, model.DatabaseRestoring) }); err != nil {
		return err
	}
	defer e.done.drop(op.ID)
	err = os.MkdirAll(e.databaseDirectory(db.ID), 0o700)
	if err == nil {
		err = e.unpack(ctx, plan, e.dataDirectory(db.ID, op.Generation), backup.RestoreOptions{
			Progress: func(done, total int64) { e.done.set(op.ID, done, total) },
		})
	}
	if err == nil {
		err = e.prepareGeneration(ctx, db, op, &plan)
	}
	if err == nil {
		err = e.switchGeneration(ctx, db, op)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	undoErr := e.takeBackSwitch(ctx, db)
	if undoErr == nil {
		undoErr = e.endUndone(db, op, err)
	}
	e.instanceChanged(db.ID, postgres.StateFailed, operationMessage(err))
	return errors.Join(err, undoErr)
}
