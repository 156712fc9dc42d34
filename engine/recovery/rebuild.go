package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"

	"holdfast/backup"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Rebuild creates the data directory of a database that was moved here with only its backups, from the newest of them.
// It is a restore that replaces nothing. If it fails or the appliance crashes before the switch, the next start tries
// again.
func (s *Service) Rebuild(ctx context.Context, db model.Database) error {
	op := s.databases.NewOperation(db, model.OperationRestore, "rebuilding")
	backups, err := s.restorableBackups(db.ID)
	if err == nil && len(backups) == 0 {
		err = model.Errorf(model.CodeConflict, "the database was moved here without files, and has no backup")
	}
	var plan RestorePlan
	if err == nil {
		plan, err = s.PlanBackup(ctx, backups[0])
	}
	if err == nil {
		err = s.checkSpaceForRestore(plan)
	}
	if err != nil {
		s.databases.HandleInstanceState(db.ID, postgres.StateFailed, model.PublicMessage(err))
		return err
	}
	op.Backup, op.Generation = plan.Backup.ID, db.LastGeneration()+1
	if err := s.core.Meta.Update(func(tx *meta.Tx) error { return databases.InsertOperation(tx, op, model.DatabaseRestoring) }); err != nil {
		return err
	}
	defer s.databases.Progress.Drop(op.ID)
	build := func(ctx context.Context) error {
		if err := os.MkdirAll(s.databases.DatabaseDirectory(db.ID), 0o700); err != nil {
			return fmt.Errorf("make database directory: %w", err)
		}
		return s.Unpack(ctx, plan, s.databases.DataDirectory(db.ID, op.Generation), backup.RestoreOptions{
			Progress: func(done, total int64) { s.databases.Progress.Set(op.ID, done, total) },
		})
	}
	if _, err = s.buildAndSwitch(ctx, db, op, stage{build, &plan}); err == nil || ctx.Err() != nil {
		return err
	}
	undoErr := s.RevertSwitch(ctx, db)
	if undoErr == nil {
		undoErr = s.endRolledBack(db, op, err)
	}
	s.databases.HandleInstanceState(db.ID, postgres.StateFailed, databases.OperationMessage(err))
	return errors.Join(err, undoErr)
}
