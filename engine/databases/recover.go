package databases

import (
	"context"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// MarkUnrecovered keeps a database failed until the next start of the appliance,
// because an interrupted operation could not be recovered.
func (s *Service) MarkUnrecovered(db model.Database, cause error) error {
	if s.core.Lifetime.Err() != nil {
		return cause
	}
	s.core.Log.Error("recover database", "database", db.ID, "name", db.Name, "error", cause)
	if _, err := s.core.Claims.Take(db.ID, core.Unrecovered); err != nil {
		return err
	}
	s.HandleInstanceState(db.ID, postgres.StateFailed, "what a crash interrupted could not be recovered; restart the appliance to try again: "+cause.Error())
	return nil
}

// RollBackCreate removes a database whose creation did not complete.
func (s *Service) RollBackCreate(ctx context.Context, db model.Database) error {
	s.core.Log.Warn("rolling back the creation of a database", "database", db.ID, "name", db.Name)
	if err := postgres.KillOrphan(ctx, s.Majors.Find, s.DataDirectory(db.ID, db.Generation)); err != nil {
		return err
	}
	call := s.core.System(model.ActionDatabaseCreate, db.Organization, DatabaseResource(db))
	return s.ForgetDatabase(ctx, call, db, core.ErrInterrupted, nil)
}

// ResumeDelete finishes an interrupted deletion.
func (s *Service) ResumeDelete(ctx context.Context, db model.Database) error {
	s.core.Log.Warn("carrying on with the deletion of a database", "database", db.ID, "name", db.Name)
	if err := postgres.StopOrphan(ctx, s.DataDirectory(db.ID, db.Generation)); err != nil {
		return err
	}
	call := s.core.System(model.ActionDatabaseDelete, db.Organization, DatabaseResource(db))
	_, err := s.finishDelete(ctx, call, db, db.Operation)
	return err
}

// RecoverOperation ends the operation that ran on the database. A restore that has
// already switched to its data is completed; any other operation is rolled back. On a
// full disk its end is recorded later, as without a crash.
func (s *Service) RecoverOperation(ctx context.Context, db model.Database) error {
	op, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.DatabaseOperation, error) { return tx.Operations().Get(db.Operation) })
	if err != nil {
		return err
	}
	if op.Generation == db.Generation {
		s.core.Log.Warn("carrying on with a switch to restored data", "database", db.ID, "operation", op.ID, "type", op.Type)
		return laterIsFine(s.EndOperation(op))
	}
	s.core.Log.Warn("rolling back an operation", "database", db.ID, "operation", op.ID, "type", op.Type, "phase", op.Phase)
	if op.Generation != 0 {
		if err := s.endBuild(ctx, db, op); err != nil {
			return err
		}
		if err := s.backups.RemoveBuilt(db, op); err != nil {
			return err
		}
	}
	_, err = s.ConcludeOperation(s.RollBack(db, op), op, core.ErrInterrupted)
	return laterIsFine(err)
}

// laterIsFine returns nil for the error of an end that is recorded once the disk has space.
func laterIsFine(err error) error {
	if err != nil && core.IsDiskFull(err) {
		return nil
	}
	return err
}

// endBuild ends what still runs on the data directories that an interrupted operation was building.
func (s *Service) endBuild(ctx context.Context, db model.Database, op model.DatabaseOperation) error {
	dir := s.DataDirectory(op.Database, op.Generation)
	switch {
	case op.Type == model.OperationUpgrade:
		return postgres.EndUpgrade(ctx, s.Majors.Find, s.DataDirectory(op.Database, op.CopyGeneration()), dir)
	case db.Replaced != nil && db.Replaced.Generation == op.Generation:
		return postgres.StopOrphan(ctx, dir) // an undo: it is kept
	default:
		return postgres.KillOrphan(ctx, s.Majors.Find, dir)
	}
}

// RollBack returns the appliance's own call that rolls back an operation.
func (s *Service) RollBack(db model.Database, op model.DatabaseOperation) *model.Call {
	call := s.core.System(model.ActionOperationRollBack, db.Organization, DatabaseResource(db))
	call.Note("operation", op.ID)
	call.Note("type", string(op.Type))
	return call
}
