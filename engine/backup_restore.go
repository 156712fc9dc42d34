package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/backup"
	"holdfast/backup/wal"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BackupRestore begins to put the database back to what it was when the
// backup was made, and returns the operation at once. The restored files are
// built and recovered beside the running database, which is replaced only
// when they are known to work; a restore that fails leaves it as it was.
func (e *Engine) BackupRestore(call *model.Call, database, id string) (model.DatabaseOperation, error) {
	if err := e.onlyOnce(call); err != nil {
		return model.DatabaseOperation{}, err
	}
	b, err := e.completedBackup(call, database, id)
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	return e.beginRestore(call, database, model.OperationRestore, func(model.Database) (RestorePlan, error) {
		return e.planBackup(e.ctx, b)
	})
}

// completedBackup returns a backup that can be restored.
func (e *Engine) completedBackup(call *model.Call, database, id string) (model.Backup, error) {
	b, err := e.BackupGet(call, database, id)
	if err == nil {
		err = mustBeCompleted(b, "restored")
	}
	return b, err
}

// RecoveryRestore begins to bring the database to a point, as BackupRestore
// does.
func (e *Engine) RecoveryRestore(call *model.Call, database string, at RestorePoint) (model.DatabaseOperation, error) {
	if err := at.validate(); err != nil {
		return model.DatabaseOperation{}, err
	}
	if err := e.onlyOnce(call); err != nil {
		return model.DatabaseOperation{}, err
	}
	return e.beginRestore(call, database, model.OperationPITR, func(db model.Database) (RestorePlan, error) {
		return e.planPoint(e.ctx, db, at)
	})
}

// beginRestore begins the restore that plan plans on the claimed database.
func (e *Engine) beginRestore(
	call *model.Call, database string, t model.OperationType, plan func(model.Database) (RestorePlan, error),
) (model.DatabaseOperation, error) {
	return e.beginSwitch(call, database, t, "checking", func(db model.Database, op *model.DatabaseOperation) (stage, error) {
		p, err := plan(db)
		if err == nil {
			err = e.roomForRestore(p)
		}
		if err != nil {
			return stage{}, err
		}
		p.describe(op)
		op.Generation = db.LastGeneration() + 1
		call.Note("backup", p.Backup.ID)
		call.Note("target", p.Target.End.String())
		build := func(ctx context.Context) error {
			return e.checkAndUnpack(ctx, &p, op.ID, e.dataDirectory(op.Database, op.Generation))
		}
		return stage{build, &p}, nil
	})
}

// roomForRestore refuses a restore for which there is no room beside the data
// it replaces.
func (e *Engine) roomForRestore(p RestorePlan) error {
	if host, err := measureHost(e.cfg.DataDir); err == nil && host.DiskFree < p.NeededBytes() {
		return model.Errorf(model.CodeForbidden, "the disk has %d MB free, and this restore needs %d MB beside the data it replaces: the operator must make room",
			host.DiskFree>>20, p.NeededBytes()>>20)
	}
	return nil
}

// RecoveryUndo begins to bring back the data that the last restore replaced.
func (e *Engine) RecoveryUndo(call *model.Call, database string) (model.DatabaseOperation, error) {
	if err := e.onlyOnce(call); err != nil {
		return model.DatabaseOperation{}, err
	}
	return e.beginSwitch(call, database, model.OperationRestore, "undoing", func(db model.Database, op *model.DatabaseOperation) (stage, error) {
		if db.Replaced == nil || e.mayRemove(db.Replaced.ExpiresAt) {
			return stage{}, model.Errorf(model.CodeForbidden, "there is no restore to undo: the data it replaced is kept for %s", e.cfg.ReplacedRetention)
		}
		op.Generation = db.Replaced.Generation
		return stage{build: func(context.Context) error { return nil }}, nil
	})
}

// restoring is what a restore says it is doing.
const restoring = "a restore"

// stage is the data directory that a database is to be switched to: how it is
// made, and what is to be recovered then, nil for one that was in use before.
type stage struct {
	build func(context.Context) error
	plan  *RestorePlan
}

// beginSwitch claims the database, records the operation that prepare
// describes, and lets it run.
func (e *Engine) beginSwitch(
	call *model.Call, database string, t model.OperationType, phase string, prepare func(model.Database, *model.DatabaseOperation) (stage, error),
) (model.DatabaseOperation, error) {
	db, release, err := e.claimWhole(call, database, restoring)
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	op := e.newOperation(db, t, phase)
	next, err := prepare(db, &op)
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
		e.runSwitch(e.ctx, db, op, next)
	})
	return op, nil
}

// runSwitch builds the new data directory, switches to it, and records how
// that ended. When the appliance is being stopped, the operation is left as it
// is: the next start settles it.
func (e *Engine) runSwitch(ctx context.Context, db model.Database, op model.DatabaseOperation, next stage) {
	began := time.Now()
	err := next.build(ctx)
	if err == nil {
		err = e.prepareGeneration(ctx, db, op, next.plan)
	}
	switched := err == nil
	if err == nil {
		err = e.switchGeneration(ctx, db, op)
	}
	if err == nil && next.plan != nil {
		e.notePace(restorePaceSetting, *next.plan, next.plan.unpacked, time.Since(began)-next.plan.unpacked)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	err = e.explainFailed(err)
	e.log.Error("restore failed", "database", db.ID, "operation", op.ID, "error", err)
	if err := e.undoSwitch(ctx, db, op, switched, err); err != nil {
		e.log.Error("roll back a restore", "database", db.ID, "operation", op.ID, "error", err)
	}
}

// prepareGeneration recovers the new data directory on a private socket, and
// gives it the roles and passwords the database has now.
func (e *Engine) prepareGeneration(ctx context.Context, db model.Database, op model.DatabaseOperation, plan *RestorePlan) error {
	if err := e.setPhase(op.ID, "recovering"); err != nil {
		return err
	}
	next := db
	next.Generation = op.Generation
	scratch, err := e.scratchInstance(ctx, next, op.ID)
	if err != nil {
		return err
	}
	if err := e.issueCertificate(scratch.Dir); err != nil {
		return err
	}
	if plan == nil {
		err = e.instances.Start(ctx, scratch)
	} else {
		err = e.startRecovered(ctx, scratch, *plan, func(done, total int64) { e.done.set(op.ID, done, total) })
	}
	if err != nil {
		e.states.drop(op.ID)
		return errors.Join(fmt.Errorf("recover restored data: %w", err), e.stopInstance(ctx, op.ID))
	}
	err = errors.Join(e.provision(ctx, op.ID, db), e.stopRecovered(ctx, scratch))
	if err == nil && plan != nil {
		err = e.recordFork(next, *plan)
	}
	if err != nil {
		return err
	}
	return e.setPhase(op.ID, "switching")
}

// recordFork tells the WAL archive where the new generation's history begins.
func (e *Engine) recordFork(next model.Database, plan RestorePlan) error {
	archive, err := e.walArchive(next.ID)
	if err != nil {
		return err
	}
	return archive.Create(next.Generation, &wal.Parent{Generation: plan.Target.Generation, Timeline: plan.Target.Timeline, Fork: plan.Target.End})
}

// switchGeneration replaces the running instance by one on the new data
// directory. The commit in the middle is the switch: the old one has ended
// then, and nobody has written to the new one, so that no crash loses what
// either has acknowledged. A start rolls back what ended before it, and carries
// on from there; a new instance that does not start is taken back.
func (e *Engine) switchGeneration(ctx context.Context, db model.Database, op model.DatabaseOperation) error {
	if err := e.stopInstance(ctx, db.ID); err != nil {
		return err
	}
	next, err := e.recordSwitch(db.ID, e.goesOn(db, op.Generation))
	if err != nil {
		return err
	}
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if _, err := e.startInstance(startCtx, next); err != nil {
		return fmt.Errorf("start restored instance: %w", err)
	}
	if err := e.endOperation(op); err != nil && !isDiskFull(err) { // then it is recorded later
		e.log.Error("record the end of a restore", "database", db.ID, "operation", op.ID, "error", err)
	}
	if err := e.ReceiveWAL(next); err != nil {
		e.log.Error("receive WAL", "database", db.ID, "error", err)
	}
	e.backUpSoon(db.ID)
	e.background(func(ctx context.Context) { e.sampleOne(ctx, next) }) // what was known is of the data that was replaced
	if superseded := db.Replaced; superseded != nil && superseded.Generation != op.Generation {
		if err := removeDirectory(e.dataDirectory(db.ID, superseded.Generation)); err != nil {
			e.log.Error("remove data replaced earlier", "database", db.ID, "error", err)
		}
	}
	return nil
}

// drained takes what the stopped instance of a database wrote last into the
// archive, and reports whether all that it has ever committed is there: it was
// shut down in order, and its files have what had not been received.
func (e *Engine) drained(db model.Database) bool {
	err := e.drain(db)
	if err != nil {
		e.log.Warn("what the replaced data committed last may be missing in the archive", "database", db.ID, "generation", db.Generation, "reason", err)
	}
	return err == nil
}

func (e *Engine) drain(db model.Database) error {
	shutdown, err := backup.ReadShutdown(e.dataDirectory(db.ID, db.Generation))
	if err != nil {
		return err
	}
	archive, err := e.walArchive(db.ID)
	if err != nil {
		return err
	}
	if err := archive.Drain(db.Generation, e.serverWAL(db), shutdown.Timeline, shutdown.Checkpoint); err != nil {
		return err
	}
	// What the archive has ends with a whole record.
	return archive.Covers(db.Generation, shutdown.Timeline, shutdown.Checkpoint, shutdown.Checkpoint+1)
}

// goesOn describes, but for its time, the switch from db, whose instance has
// stopped, to a generation: whether all of the old one's WAL is archived, and
// where in the WAL the new one goes on. That is where it forked, or for one that
// served before and is brought back, where it was shut down.
func (e *Engine) goesOn(db model.Database, generation int) model.Served {
	next := model.Served{Generation: generation, Undrained: !e.drained(db)}
	shutdown, err := backup.ReadShutdown(e.dataDirectory(db.ID, generation))
	if err != nil {
		e.log.Warn("where the WAL goes on after a switch is not known", "database", db.ID, "generation", generation, "reason", err)
		return next
	}
	next.Timeline, next.LSN = int(shutdown.Timeline), shutdown.Checkpoint.String()
	back := generation == firstGeneration || slices.ContainsFunc(db.Served, func(s model.Served) bool { return s.Generation == generation })
	if archive, err := e.walArchive(db.ID); err == nil && !back {
		if known, err := archive.Generation(generation); err == nil && known.Parent != nil {
			next.LSN = known.Parent.Fork.String()
		}
	}
	return next
}

// recordSwitch makes a generation the current one, from now on.
func (e *Engine) recordSwitch(id string, next model.Served) (db model.Database, err error) {
	now := e.clock().Truncate(time.Microsecond) // as clients are told it
	next.Since = now
	err = e.meta.Update(func(tx *meta.Tx) (err error) {
		db, err = tx.Databases().Update(id, func(d *model.Database) error {
			d.Replaced = &model.Replaced{Generation: d.Generation, At: now, ExpiresAt: now.Add(e.cfg.ReplacedRetention)}
			d.Generation = next.Generation
			d.Served = append(d.Served, next)
			if d.Rebuild {
				d.Rebuild, d.Replaced = false, nil
			}
			return nil
		})
		return err
	})
	return db, err
}

// takeBackSwitch stops the instance, and makes current again what was so before
// recordSwitch, if that came to be. It waits for room: what the old generation
// acknowledges from here on would be lost if a start took the new one. What
// cannot be taken back is left to the next start.
func (e *Engine) takeBackSwitch(ctx context.Context, before model.Database) error {
	if err := e.stopInstance(ctx, before.ID); err != nil {
		return err
	}
	if now, err := e.record(before.ID); err != nil || now.Generation == before.Generation {
		return err
	}
	takeBack := func(tx *meta.Tx) error {
		_, err := tx.Databases().Update(before.ID, func(d *model.Database) error {
			d.Generation, d.Served, d.Replaced, d.Rebuild = before.Generation, before.Served, before.Replaced, before.Rebuild
			return nil
		})
		return err
	}
	if err := e.meta.Update(takeBack); err == nil || !isDiskFull(err) {
		return err
	}
	return e.recordWithRoom(ctx, takeBack)
}

// undoSwitch brings the database back to what it was before the operation;
// switched says that its instance was touched. When the old data does not
// start either, that is tried on in the background, and the operation ends: as
// long as it runs nobody can do anything about the database.
func (e *Engine) undoSwitch(
	ctx context.Context, db model.Database, op model.DatabaseOperation, switched bool, cause error,
) error {
	if switched {
		if err := e.takeBackSwitch(ctx, db); err != nil {
			return err
		}
		if err := e.startDatabase(ctx, db); err != nil {
			if ctx.Err() != nil {
				return err
			}
			cause = errors.Join(cause, err)
		}
	}
	return e.endUndone(db, op, cause)
}

// endUndone removes what an operation has built, and ends it.
func (e *Engine) endUndone(db model.Database, op model.DatabaseOperation, cause error) error {
	removeErr := e.RemoveBuilt(db, op)
	_, err := e.concludeOperation(e.rollBack(db, op), op, cause)
	return errors.Join(removeErr, err)
}

// RemoveBuilt removes the data directory the operation was building. The one
// an undo goes back to is not the operation's to remove.
func (e *Engine) RemoveBuilt(db model.Database, op model.DatabaseOperation) error {
	if db.Replaced != nil && db.Replaced.Generation == op.Generation {
		return nil
	}
	if err := e.discard(e.dataDirectory(db.ID, op.Generation), fmt.Sprintf("%s-%d", db.ID, op.Generation)); err != nil {
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
	if err := e.change(e.system(model.ActionReplacedExpire, db.Organization, databaseResource(db)), func(tx *meta.Tx) error {
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
