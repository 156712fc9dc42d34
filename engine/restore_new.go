package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BackupRestoreNew begins to make another database, in the same project, of
// what was there when the backup was made.
func (e *Engine) BackupRestoreNew(call *model.Call, database, id, name string) (model.DatabaseOperation, error) {
	if err := model.ValidateDatabaseName("name", name); err != nil {
		return model.DatabaseOperation{}, err
	}
	if err := e.onlyOnce(call); err != nil {
		return model.DatabaseOperation{}, err
	}
	b, err := e.completedBackup(call, database, id)
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	return e.beginRestoreNew(call, database, name, model.OperationRestore, func(model.Database) (RestorePlan, error) {
		return e.planBackup(e.ctx, b)
	})
}

// RecoveryRestoreNew begins to make another database, in the same project, of
// what was there at a point.
func (e *Engine) RecoveryRestoreNew(call *model.Call, database string, at RestorePoint, name string) (model.DatabaseOperation, error) {
	if err := cmp.Or(at.validate(), model.ValidateDatabaseName("name", name)); err != nil {
		return model.DatabaseOperation{}, err
	}
	if err := e.onlyOnce(call); err != nil {
		return model.DatabaseOperation{}, err
	}
	return e.beginRestoreNew(call, database, name, model.OperationPITR, func(db model.Database) (RestorePlan, error) {
		return e.planPoint(e.ctx, db, at)
	})
}

// RestorePlanNew is RestorePlan for a restore into another database.
func (e *Engine) RestorePlanNew(ctx context.Context, call *model.Call, database string, at RestorePoint, name string) (RestorePlan, error) {
	if err := model.ValidateDatabaseName("name", name); err != nil {
		return RestorePlan{}, err
	}
	p, err := e.RestorePlan(ctx, call, database, at)
	if err != nil {
		return p, err
	}
	return p, e.meta.View(func(tx *meta.Tx) error {
		source, err := databaseOf(tx, call.Organization, database)
		if err != nil {
			return err
		}
		if _, err = tx.Databases().Find(meta.ByName, meta.Key(source.Project, name)); errors.Is(err, meta.ErrNotFound) {
			return nil
		}
		return cmp.Or(err, nameTaken(meta.ErrExists, model.ResourceDatabase, name))
	})
}

// beginRestoreNew claims the new database's name and port, and the source's
// backups, and lets the restore run. The source goes on meanwhile.
func (e *Engine) beginRestoreNew(
	call *model.Call, database, name string, t model.OperationType, plan func(model.Database) (RestorePlan, error),
) (op model.DatabaseOperation, err error) {
	source, err := e.database(call, database)
	if err != nil {
		return op, err
	}
	releaseBackups, err := e.claimBackups(source.ID, restoring)
	if err != nil {
		return op, err
	}
	defer func() {
		if err != nil {
			releaseBackups()
		}
	}()
	p, err := plan(source)
	if err == nil {
		err = e.roomForRestore(p)
	}
	if err != nil {
		return op, err
	}
	db, release, err := e.claimDatabase(call, NewDatabase{
		Project: source.Project, Name: name, User: source.Owner, Password: model.GeneratePassword(randomBytes()),
	})
	call.Resource = databaseResource(source) // the new one is noted
	if err != nil {
		return op, noRoom(err)
	}
	db.Major, db.Version, db.Settings = source.Major, source.Version, source.Settings
	op = e.newOperation(source, t, "checking")
	p.describe(&op)
	op.NewDatabase, db.Operation = db.ID, op.ID
	if err = e.recordRestoreNew(call, db, op); err != nil {
		release()
		return op, errors.Join(err, e.meta.Update(func(tx *meta.Tx) error { return tx.Databases().Delete(db.ID) }))
	}
	e.work.Go(func() {
		defer releaseBackups()
		defer release()
		defer e.done.drop(op.ID)
		e.runRestoreNew(e.ctx, call, db, op, p)
	})
	return op, nil
}

func (e *Engine) recordRestoreNew(call *model.Call, db model.Database, op model.DatabaseOperation) error {
	call.Note("new_database", db.ID)
	call.Note("backup", op.Backup)
	return e.change(call, func(tx *meta.Tx) error {
		if err := tx.Operations().Insert(op); err != nil {
			return err
		}
		_, err := tx.Databases().Update(db.ID, func(d *model.Database) error {
			d.Major, d.Version, d.Settings, d.Operation = db.Major, db.Version, db.Settings, db.Operation
			return nil
		})
		return err
	})
}

// runRestoreNew builds the new database and records how that ended. When the
// appliance is being stopped, the next start takes it all back.
func (e *Engine) runRestoreNew(ctx context.Context, call *model.Call, db model.Database, op model.DatabaseOperation, p RestorePlan) {
	began := time.Now()
	err := e.buildRestored(ctx, db, op, &p)
	if err == nil {
		e.notePace(restorePaceSetting, p, p.unpacked, time.Since(began)-p.unpacked)
		err = e.publishRestored(op, db.ID)
	}
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		if err := e.ReceiveWAL(db); err != nil {
			e.log.Error("receive WAL", "database", db.ID, "error", err)
		}
		return
	}
	err = e.explainFailed(err)
	e.log.Error("restore into a new database failed", "database", op.Database, "new", db.ID, "error", err)
	failed := e.system(model.ActionDatabaseCreate, db.Organization, databaseResource(db))
	if undoErr := e.forgetDatabase(ctx, failed, db, err); undoErr != nil {
		// What is left of it goes with the next start; nobody need wait for that.
		err := errors.Join(undoErr, e.meta.Update(func(tx *meta.Tx) error { return e.closeOperation(tx, op.ID, err) }))
		e.log.Error("roll back a restore into a new database", "new", db.ID, "error", err)
	}
}

// buildRestored makes the new database's data directory, brings it to the
// plan's target, and starts its instance.
func (e *Engine) buildRestored(ctx context.Context, db model.Database, op model.DatabaseOperation, p *RestorePlan) error {
	dir := e.dataDirectory(db.ID, db.Generation)
	if err := os.MkdirAll(e.databaseDirectory(db.ID), 0o700); err != nil {
		return fmt.Errorf("make database directory: %w", err)
	}
	if err := e.checkAndUnpack(ctx, p, op.ID, dir); err != nil {
		return err
	}
	if err := e.setPhase(op.ID, "recovering"); err != nil {
		return err
	}
	scratch, err := e.scratchInstance(ctx, db, op.ID)
	if err != nil {
		return err
	}
	if err := e.issueCertificate(dir); err != nil {
		return err
	}
	if err := e.startRecovered(ctx, scratch, *p, func(done, total int64) { e.done.set(op.ID, done, total) }); err != nil {
		return errors.Join(fmt.Errorf("recover restored data: %w", err), e.stopInstance(ctx, op.ID))
	}
	if err := errors.Join(e.provision(ctx, op.ID, db), e.stopRecovered(ctx, scratch)); err != nil {
		return err
	}
	_, err = e.startInstance(ctx, db)
	return err
}

// publishRestored commits that the new database is available.
func (e *Engine) publishRestored(op model.DatabaseOperation, id string) error {
	return e.meta.Update(func(tx *meta.Tx) error {
		if err := e.closeOperation(tx, op.ID, nil); err != nil {
			return err
		}
		_, err := tx.Databases().Update(id, func(d *model.Database) error {
			d.Status, d.Operation, d.UpdatedAt = model.DatabaseAvailable, "", e.clock()
			return nil
		})
		return err
	})
}
