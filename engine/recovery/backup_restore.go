package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/backup"
	"holdfast/backup/wal"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BackupRestore starts a restore of a backup and returns the operation at once. It builds and recovers the restored
// files next to the running database, and replaces that only when they are known to work. A failed restore leaves the
// database unchanged. If into is not nil, the files become a new database of that name in the same project instead.
func (s *Service) BackupRestore(call *model.Call, database, id string, into *string) (model.DatabaseOperation, error) {
	if err := validateInto(into); err != nil {
		return model.DatabaseOperation{}, err
	}
	if err := s.core.OnlyOnce(call); err != nil {
		return model.DatabaseOperation{}, err
	}
	b, err := s.completedBackup(call, database, id)
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	return s.beginRestore(call, database, into, model.OperationRestore, func(model.Database) (RestorePlan, error) {
		return s.PlanBackup(s.core.Lifetime, b)
	})
}

// validateInto checks the name of the new database, if the restore creates one.
func validateInto(name *string) error {
	if name == nil {
		return nil
	}
	return model.ValidateDatabaseName("name", *name)
}

// completedBackup returns a backup that can be restored.
func (s *Service) completedBackup(call *model.Call, database, id string) (model.Backup, error) {
	b, err := s.BackupGet(call, database, id)
	if err == nil {
		err = mustBeCompleted(b, "restored")
	}
	return b, err
}

// RecoveryRestore starts a restore of the database to a point in time or an LSN,
// as BackupRestore does.
func (s *Service) RecoveryRestore(call *model.Call, database string, at RestorePoint, into *string) (model.DatabaseOperation, error) {
	if err := cmp.Or(at.validate(), validateInto(into)); err != nil {
		return model.DatabaseOperation{}, err
	}
	if err := s.core.OnlyOnce(call); err != nil {
		return model.DatabaseOperation{}, err
	}
	return s.beginRestore(call, database, into, model.OperationPITR, func(db model.Database) (RestorePlan, error) {
		return s.planPoint(s.core.Lifetime, db, at)
	})
}

// beginRestore claims the database, or the new one, and starts the restore that
// plan returns.
func (s *Service) beginRestore(
	call *model.Call, database string, into *string, t model.OperationType, plan func(model.Database) (RestorePlan, error),
) (model.DatabaseOperation, error) {
	if into != nil {
		return s.beginRestoreNew(call, database, *into, t, plan)
	}
	return s.beginSwitch(call, database, t, "checking", func(db model.Database, op *model.DatabaseOperation) (stage, error) {
		p, err := plan(db)
		if err == nil {
			err = s.checkSpaceForRestore(p)
		}
		if err != nil {
			return stage{}, err
		}
		p.describe(op)
		op.Generation = db.LastGeneration() + 1
		call.Note("backup", p.Backup.ID)
		call.Note("target", p.Target.End.String())
		build := func(ctx context.Context) error {
			return s.checkAndUnpack(ctx, &p, op.ID, s.databases.DataDirectory(op.Database, op.Generation))
		}
		return stage{build, &p}, nil
	})
}

// checkSpaceForRestore refuses a restore that does not fit on the disk in addition to the data it replaces.
func (s *Service) checkSpaceForRestore(p RestorePlan) error {
	if host, err := core.MeasureHost(s.core.Config.DataDir); err == nil && host.DiskFree < p.NeededBytes() {
		return model.Errorf(model.CodeForbidden, "the disk has %d MB free, and this restore needs %d MB beside the data it replaces: the operator must make room",
			host.DiskFree>>20, p.NeededBytes()>>20)
	}
	return nil
}

// RecoveryUndo starts to bring back the data that the last restore replaced.
func (s *Service) RecoveryUndo(call *model.Call, database string) (model.DatabaseOperation, error) {
	if err := s.core.OnlyOnce(call); err != nil {
		return model.DatabaseOperation{}, err
	}
	return s.beginSwitch(call, database, model.OperationRestore, "undoing", func(db model.Database, op *model.DatabaseOperation) (stage, error) {
		if db.Replaced == nil || s.core.MayRemove(db.Replaced.ExpiresAt) {
			return stage{}, model.Errorf(model.CodeForbidden, "there is no restore to undo: the data it replaced is kept for %s", s.core.Config.ReplacedRetention)
		}
		op.Generation = db.Replaced.Generation
		return stage{build: func(context.Context) error { return nil }}, nil
	})
}

// stage describes the data directory that a database will be switched to: how to build it, and the plan for its
// recovery, nil for one that was in use before.
type stage struct {
	build func(context.Context) error
	plan  *RestorePlan
}

// beginSwitch claims the database, records the operation that prepare describes
// and runs it in the background.
func (s *Service) beginSwitch(
	call *model.Call, database string, t model.OperationType, phase string, prepare func(model.Database, *model.DatabaseOperation) (stage, error),
) (model.DatabaseOperation, error) {
	db, release, err := s.databases.ClaimExclusively(call, database, databases.Restoring)
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	op := s.databases.NewOperation(db, t, phase)
	next, err := prepare(db, &op)
	if err == nil {
		err = s.core.Change(call, func(tx *meta.Tx) error { return databases.InsertOperation(tx, op, model.DatabaseRestoring) })
	}
	if err != nil {
		release()
		return model.DatabaseOperation{}, err
	}
	s.core.Work.Go(func() {
		defer release()
		defer s.databases.Progress.Drop(op.ID)
		s.runSwitch(s.core.Lifetime, db, op, next)
	})
	return op, nil
}

// runSwitch builds the new data directory, switches to it and records the
// outcome. When the appliance stops, the operation stays as it is: the next start
// recovers it.
func (s *Service) runSwitch(ctx context.Context, db model.Database, op model.DatabaseOperation, next stage) {
	began := time.Now()
	switched, err := s.buildAndSwitch(ctx, db, op, next)
	if err == nil && next.plan != nil {
		s.notePace(restorePaceSetting, *next.plan, next.plan.unpacked, time.Since(began)-next.plan.unpacked)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	err = s.core.ExplainFailed(err)
	s.core.Log.Error("restore failed", "database", db.ID, "operation", op.ID, "error", err)
	if err := s.rollBackSwitch(ctx, db, op, switched, err); err != nil {
		s.core.Log.Error("roll back a restore", "database", db.ID, "operation", op.ID, "error", err)
	}
}

// buildAndSwitch builds the new data directory and switches to it. switched reports whether the switch has begun.
func (s *Service) buildAndSwitch(ctx context.Context, db model.Database, op model.DatabaseOperation, next stage) (switched bool, err error) {
	if err := next.build(ctx); err != nil {
		return false, err
	}
	if err := s.PrepareGeneration(ctx, db, op, next.plan); err != nil {
		return false, err
	}
	return true, s.SwitchGeneration(ctx, db, op)
}

// PrepareGeneration recovers the new data directory and records in the WAL archive where its history begins.
func (s *Service) PrepareGeneration(ctx context.Context, db model.Database, op model.DatabaseOperation, plan *RestorePlan) error {
	next := db
	next.Generation = op.Generation
	err := s.recoverPrivately(ctx, next, op, plan)
	if err == nil && plan != nil {
		err = s.recordFork(next, *plan)
	}
	if err != nil {
		return err
	}
	return s.databases.SetPhase(op.ID, "switching")
}

// recoverPrivately recovers the data directory of the record next on a private socket, by the plan if there is one,
// sets the recorded roles and passwords, and stops the instance.
func (s *Service) recoverPrivately(ctx context.Context, next model.Database, op model.DatabaseOperation, plan *RestorePlan) error {
	if err := s.databases.SetPhase(op.ID, "recovering"); err != nil {
		return err
	}
	scratch, err := s.ScratchInstance(ctx, next, op.ID)
	if err != nil {
		return err
	}
	if err := s.databases.IssueCertificate(scratch.Dir); err != nil {
		return err
	}
	if plan == nil {
		err = s.databases.Instances.Start(ctx, scratch)
	} else {
		err = s.StartRecovered(ctx, scratch, *plan, func(done, total int64) { s.databases.Progress.Set(op.ID, done, total) })
	}
	if err != nil {
		return errors.Join(fmt.Errorf("recover restored data: %w", err), s.databases.StopInstance(ctx, op.ID))
	}
	return errors.Join(s.databases.Provision(ctx, op.ID, next), s.StopRecovered(ctx, scratch))
}

// recordFork records in the WAL archive where the new generation's history begins.
func (s *Service) recordFork(next model.Database, plan RestorePlan) error {
	archive, err := s.WALArchive(next.ID)
	if err != nil {
		return err
	}
	return archive.Create(next.Generation, &wal.Parent{Generation: plan.Target.Generation, Timeline: plan.Target.Timeline, Fork: plan.Target.End})
}

// SwitchGeneration replaces the running instance with one on the new data directory. The commit in the middle is the
// switch: by then the old instance has stopped and the new one has not accepted writes, so no crash loses what either
// has acknowledged. The next start rolls back a switch interrupted before the commit and finishes one interrupted after
// it. The caller rolls back if the new instance does not start.
func (s *Service) SwitchGeneration(ctx context.Context, db model.Database, op model.DatabaseOperation) error {
	if err := s.databases.StopInstance(ctx, db.ID); err != nil {
		return err
	}
	next, err := s.RecordSwitch(db.ID, s.describeSwitch(db, op.Generation))
	if err != nil {
		return err
	}
	startCtx, cancel := context.WithTimeout(ctx, databases.StartTimeout)
	defer cancel()
	if _, err := s.databases.StartInstance(startCtx, next); err != nil {
		return fmt.Errorf("start restored instance: %w", err)
	}
	if err := s.databases.EndOperation(op); err != nil && !core.IsDiskFull(err) { // a full disk: recorded later
		s.core.Log.Error("record the end of a restore", "database", db.ID, "operation", op.ID, "error", err)
	}
	if err := s.ReceiveWAL(next); err != nil {
		s.core.Log.Error("receive WAL", "database", db.ID, "error", err)
	}
	s.backUpSoon(db.ID)
	s.core.Background(func(ctx context.Context) { s.databases.SampleOne(ctx, next) }) // the samples are of the replaced data
	if superseded := db.Replaced; superseded != nil && superseded.Generation != op.Generation {
		if err := databases.RemoveDirectory(s.databases.DataDirectory(db.ID, superseded.Generation)); err != nil {
			s.core.Log.Error("remove data replaced earlier", "database", db.ID, "error", err)
		}
	}
	return nil
}

// tryDrain archives the last WAL that the stopped instance of a database wrote and
// reports whether the archive then has all its commits, which needs a clean
// shutdown.
func (s *Service) tryDrain(db model.Database) bool {
	err := s.drain(db)
	if err != nil {
		s.core.Log.Warn("what the replaced data committed last may be missing in the archive", "database", db.ID, "generation", db.Generation, "reason", err)
	}
	return err == nil
}

func (s *Service) drain(db model.Database) error {
	shutdown, err := backup.ReadShutdown(s.databases.DataDirectory(db.ID, db.Generation))
	if err != nil {
		return err
	}
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return err
	}
	if err := archive.Drain(db.Generation, s.serverWAL(db), shutdown.Timeline, shutdown.Checkpoint); err != nil {
		return err
	}
	// The archive ends with a whole record.
	return archive.Covers(db.Generation, shutdown.Timeline, shutdown.Checkpoint, shutdown.Checkpoint+1)
}

// describeSwitch describes the switch from db, whose instance has stopped, to a generation: whether all WAL of the old
// one is archived, and where in the WAL the new one continues. That is the fork point, or the shutdown checkpoint if
// the generation served before. RecordSwitch sets the time.
func (s *Service) describeSwitch(db model.Database, generation int) model.Served {
	next := model.Served{Generation: generation, Undrained: !s.tryDrain(db)}
	shutdown, err := backup.ReadShutdown(s.databases.DataDirectory(db.ID, generation))
	if err != nil {
		s.core.Log.Warn("where the WAL goes on after a switch is not known", "database", db.ID, "generation", generation, "reason", err)
		return next
	}
	next.Timeline, next.LSN = int(shutdown.Timeline), shutdown.Checkpoint.String()
	back := generation == firstGeneration || slices.ContainsFunc(db.Served, func(it model.Served) bool { return it.Generation == generation })
	if archive, err := s.WALArchive(db.ID); err == nil && !back {
		if known, err := archive.Generation(generation); err == nil && known.Parent != nil {
			next.LSN = known.Parent.Fork.String()
		}
	}
	return next
}

// RecordSwitch commits that a generation is now the current one.
func (s *Service) RecordSwitch(id string, next model.Served) (model.Database, error) {
	now := s.core.Clock().Truncate(time.Microsecond) // the precision that clients see
	next.Since = now
	return meta.Value(s.core.Meta.Update, func(tx *meta.Tx) (model.Database, error) {
		return tx.Databases().Update(id, func(d *model.Database) error {
			d.Replaced = &model.Replaced{Generation: d.Generation, At: now, ExpiresAt: now.Add(s.core.Config.ReplacedRetention)}
			d.Generation = next.Generation
			d.Served = append(d.Served, next)
			if d.Rebuild {
				d.Rebuild, d.Replaced = false, nil
			}
			return nil
		})
	})
}

// RevertSwitch stops the instance and reverts RecordSwitch, if that was committed. On a full disk it waits for free
// space: a start that used the new generation would lose what the old one acknowledges from here on. If RevertSwitch
// fails, the next start recovers the operation.
func (s *Service) RevertSwitch(ctx context.Context, before model.Database) error {
	if err := s.databases.StopInstance(ctx, before.ID); err != nil {
		return err
	}
	if now, err := s.databases.Record(before.ID); err != nil || now.Generation == before.Generation {
		return err
	}
	revert := func(tx *meta.Tx) error {
		return tx.Databases().Change(before.ID, func(d *model.Database) {
			d.Generation, d.Served, d.Replaced, d.Rebuild = before.Generation, before.Served, before.Replaced, before.Rebuild
		})
	}
	if err := s.core.Meta.Update(revert); err == nil || !core.IsDiskFull(err) {
		return err
	}
	return s.core.RecordOnceSpace(ctx, revert)
}

// rollBackSwitch returns the database to its state before the operation; switched says that its instance was stopped.
// If the old data does not start either, the operation ends while retries continue in the background: a running
// operation would block all others on the database.
func (s *Service) rollBackSwitch(
	ctx context.Context, db model.Database, op model.DatabaseOperation, switched bool, cause error,
) error {
	if switched {
		if err := s.RevertSwitch(ctx, db); err != nil {
			return err
		}
		if err := s.databases.StartDatabase(ctx, db); err != nil {
			if ctx.Err() != nil {
				return err
			}
			cause = errors.Join(cause, err)
		}
	}
	return s.endRolledBack(db, op, cause)
}

// endRolledBack removes what an operation has built and records its end.
func (s *Service) endRolledBack(db model.Database, op model.DatabaseOperation, cause error) error {
	removeErr := s.RemoveBuilt(db, op)
	_, err := s.databases.ConcludeOperation(s.databases.RollBack(db, op), op, cause)
	return errors.Join(removeErr, err)
}

// RemoveBuilt removes the data directory that the operation was building. It
// keeps the one that an undo would have brought back.
func (s *Service) RemoveBuilt(db model.Database, op model.DatabaseOperation) error {
	if db.Replaced != nil && db.Replaced.Generation == op.Generation {
		return nil
	}
	if err := s.databases.Discard(s.databases.DataDirectory(db.ID, op.Generation), fmt.Sprintf("%s-%d", db.ID, op.Generation)); err != nil {
		return fmt.Errorf("remove unfinished data directory: %w", err)
	}
	return nil
}

// DropReplaced removes the data that a restore replaced, unless the database is
// busy: then the next sweep does it.
func (s *Service) DropReplaced(id string) error {
	release, err := s.core.Claims.Take(id, "a clean-up")
	if err != nil {
		return nil // busy: the next sweep is soon enough
	}
	defer release()
	db, err := s.databases.Record(id)
	if err != nil || db.Replaced == nil {
		return err
	}
	if err := s.core.Change(s.core.System(model.ActionReplacedExpire, db.Organization, databases.DatabaseResource(db)), func(tx *meta.Tx) error {
		return tx.Databases().Change(id, func(d *model.Database) { d.Replaced = nil })
	}); err != nil {
		return err
	}
	return databases.RemoveDirectory(s.databases.DataDirectory(id, db.Replaced.Generation))
}
