package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

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
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
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
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
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
			err = s.checkRestorable(s.core.Lifetime, p)
		}
		if err != nil {
			return stage{}, err
		}
		if err := s.reserveForRestore(op.ID, p); err != nil {
			return stage{}, err
		}
		p.describe(op)
		op.Generation = db.LastGeneration() + 1
		call.Note("backup", p.Backup.ID)
		call.Note("target", p.Target.End.String())
		build := func(ctx context.Context) error {
			return s.checkAndUnpack(ctx, &p, op.ID, s.databases.DataDirectory(op.Database, op.Generation))
		}
		return stage{build: build, plan: &p, asked: true}, nil
	})
}

// reserveForRestore refuses a restore that does not fit on the disk in addition to the data it replaces and to what other
// operations will still write, and reserves what it needs for an operation, or for none if that is empty.
func (s *Service) reserveForRestore(operation string, p RestorePlan) error {
	return s.core.Space.Reserve(operation, p.Backup.SizeBytes, core.SpaceMargin, func(free int64) error {
		return core.NoSpace(nil, "the disk has %d MB free that no other operation needs, and this restore needs %d MB beside the data it replaces: the operator must free disk space",
			free>>20, p.NeededBytes()>>20)
	})
}

// RecoveryUndo starts to bring back the data that the last restore replaced.
func (s *Service) RecoveryUndo(call *model.Call, database string) (model.DatabaseOperation, error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.DatabaseOperation{}, err
	}
	return s.beginSwitch(call, database, model.OperationRestore, "undoing", func(db model.Database, op *model.DatabaseOperation) (stage, error) {
		if db.Replaced == nil || s.core.MayRemove(db.Replaced.ExpiresAt) {
			return stage{}, model.Errorf(model.CodeForbidden, "there is no restore to undo: the data it replaced is kept for %s", s.core.Config.ReplacedRetention)
		}
		op.Generation = db.Replaced.Generation
		return stage{build: func(context.Context) error { return nil }, asked: true}, nil
	})
}

// stage describes the data directory that a database will be switched to: how to build it, and the plan for its
// recovery, nil for one that needs none.
type stage struct {
	build func(context.Context) error
	plan  *RestorePlan
	// asked says that somebody asked for earlier data of the database itself, which keep their prepared transactions.
	asked bool
	// branch is where a reset takes the data from, nil for other operations. Its plan is known after build.
	branch *branchSource
	// upgrade is set for an upgrade, which stops the server to build.
	upgrade *upgrading
}

// close releases what the stage holds.
func (n stage) close() {
	n.branch.close()
	n.upgrade.close()
}

// recovery returns the plan for the recovery of what was built.
func (n stage) recovery() *RestorePlan {
	if n.branch != nil {
		return n.branch.plan
	}
	return n.plan
}

// beginSwitch claims the database, records the operation that prepare describes
// and runs it in the background.
func (s *Service) beginSwitch(
	call *model.Call, database string, t model.OperationType, phase string, prepare func(model.Database, *model.DatabaseOperation) (stage, error),
) (model.DatabaseOperation, error) {
	what := databases.Restoring
	if t == model.OperationUpgrade {
		what = databases.Upgrading
	}
	db, release, err := s.databases.ClaimExclusively(call, database, what)
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	op := s.databases.NewOperation(db, t, phase)
	next, err := prepare(db, &op)
	if err == nil {
		err = s.core.Change(call, func(tx *meta.Tx) error {
			if err := cmp.Or(s.core.RenewAuthority(tx, call), refuseRemoved(tx, next.plan)); err != nil {
				return err
			}
			return databases.InsertOperation(tx, op, model.DatabaseRestoring)
		})
	}
	if err != nil {
		next.close()
		s.core.Space.Release(op.ID)
		release()
		return model.DatabaseOperation{}, err
	}
	s.core.Work.Go(func() {
		defer release()
		defer s.core.Space.Release(op.ID)
		defer s.databases.Progress.Drop(op.ID)
		defer next.close()
		s.runSwitch(s.core.Lifetime, db, op, next)
	})
	return op, nil
}

// runSwitch builds the new data directory, switches to it and records the
// outcome. When the appliance stops, the operation stays as it is: the next start
// recovers it.
func (s *Service) runSwitch(ctx context.Context, db model.Database, op model.DatabaseOperation, next stage) {
	began := time.Now()
	building, ended := s.databases.Cancelable(ctx, op.ID)
	defer ended()
	switched, err := s.buildAndSwitch(building, ctx, db, op, next)
	err = because(building, ctx, err)
	if err == nil && next.plan != nil {
		s.notePace(restorePaceSetting, *next.plan, next.plan.unpacked, time.Since(began)-next.plan.unpacked)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	err = s.core.ExplainFailed(err)
	s.logFailed(building, "data could not be replaced", "type", op.Type, "database", db.ID, "operation", op.ID, "error", err)
	if err := s.rollBackSwitch(ctx, db, op, switched, err); err != nil {
		s.core.Log.Error("roll back a restore", "database", db.ID, "operation", op.ID, "error", err)
	}
}

// logFailed logs that the work of a context failed. A client that cancelled it knows why: that is no error of the appliance.
func (s *Service) logFailed(building context.Context, message string, args ...any) {
	level := slog.LevelError
	if building.Err() != nil {
		level = slog.LevelInfo
	}
	s.core.Log.Log(building, level, message, args...)
}

// because returns why the work of an inner context failed: the cause of its cancellation, if the outer one goes on.
func because(inner, outer context.Context, err error) error {
	if err != nil && outer.Err() == nil && inner.Err() != nil {
		return context.Cause(inner)
	}
	return err
}

// buildAndSwitch builds the new data directory within building, and switches to it. switched reports whether the switch
// has begun.
func (s *Service) buildAndSwitch(building, ctx context.Context, db model.Database, op model.DatabaseOperation, next stage) (switched bool, err error) {
	// Of a database whose data a recovery has not brought back, or not yet, there is not even the directory.
	if err := os.MkdirAll(s.databases.DatabaseDirectory(db.ID), 0o700); err != nil {
		return false, fmt.Errorf("make database directory: %w", err)
	}
	if err := next.build(building); err != nil {
		return next.upgrade.hasStopped(), err
	}
	if next.branch != nil {
		op.BranchedAt = &next.branch.moment
	}
	prepared := s.databases.EndCopiedPrepared
	if next.asked {
		prepared = s.databases.RefuseRenamedPrepared
	}
	if err := s.prepareGeneration(building, db, op, next.recovery(), prepared); err != nil {
		return next.upgrade.hasStopped(), err
	}
	return true, s.SwitchGeneration(ctx, db, op)
}

// PrepareGeneration recovers the new data directory and records in the WAL archive where its history begins.
func (s *Service) PrepareGeneration(ctx context.Context, db model.Database, op model.DatabaseOperation, plan *RestorePlan) error {
	return s.prepareGeneration(ctx, db, op, plan, s.databases.EndCopiedPrepared)
}

func (s *Service) prepareGeneration(ctx context.Context, db model.Database, op model.DatabaseOperation, plan *RestorePlan, prepared underOtherName) error {
	next := db
	next.Generation = op.Generation
	err := s.recoverPrivately(ctx, next, op, plan, prepared)
	if err == nil && plan != nil && plan.Backup.Database == db.ID {
		err = s.recordFork(next, *plan)
	}
	if err != nil {
		return err
	}
	return s.databases.BeginSwitching(op.ID)
}

// underOtherName is what to do about the prepared transactions of data in a running instance, if the data do not have the
// name of the database: they could not get it.
type underOtherName func(ctx context.Context, instance string, db model.Database) error

// recoverPrivately recovers the data directory of the record next on a private socket, by the plan if there is one,
// sets the recorded roles and passwords, and stops the instance.
func (s *Service) recoverPrivately(ctx context.Context, next model.Database, op model.DatabaseOperation, plan *RestorePlan, prepared underOtherName) error {
	if err := s.databases.SetPhase(op.ID, "recovering"); err != nil {
		return err
	}
	scratch, err := s.ScratchInstance(ctx, next, op.ID, s.databases.DataDirectory(next.ID, next.Generation))
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
	if err = prepared(ctx, op.ID, next); err == nil {
		err = s.databases.Provision(ctx, op.ID, next)
	}
	if err == nil && plan != nil {
		err = s.checkExtensions(ctx, op.ID, next.Name, scratch.Bin.Major)
	}
	return errors.Join(err, s.StopRecovered(ctx, scratch))
}

// recordFork records in the WAL archive where the new generation's history begins.
func (s *Service) recordFork(next model.Database, plan RestorePlan) error {
	archive, err := s.WALArchive(next.ID)
	if err != nil {
		return err
	}
	return archive.Create(next.Generation, &wal.Parent{Generation: plan.Target.Generation, Timeline: plan.Target.Timeline, Fork: plan.Target.End})
}
