package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// beginRestoreNew claims the new database's name and port and the source's
// backups, and runs the restore in the background. The source keeps running.
func (s *Service) beginRestoreNew(
	call *model.Call, database, name string, t model.OperationType, plan func(model.Database) (RestorePlan, error),
) (op model.DatabaseOperation, err error) {
	source, err := s.databases.Database(call, database)
	if err != nil {
		return op, err
	}
	releaseBackups, err := s.databases.ClaimBackups(source.ID, databases.Restoring)
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
		err = s.checkRestorable(s.core.Lifetime, p)
	}
	if err != nil {
		return op, err
	}
	db := s.databases.NewDatabase(call, databases.NewDatabase{
		Project: source.Project, Name: name, User: source.Owner, Password: model.GeneratePassword(core.RandomBytes()),
	})
	db.Major, db.Version = p.Backup.Major(), p.Backup.Version
	op = s.databases.NewOperation(source, t, "checking")
	if err := s.reserveForRestore(op.ID, p); err != nil {
		return op, err
	}
	p.describe(&op)
	op.NewDatabase, db.Operation = db.ID, op.ID
	call.Note("new_database", db.ID)
	call.Note("backup", op.Backup)
	var made model.Database
	_, release, err := s.databases.ClaimDatabase(call, db, "the creation", func(insert func(*meta.Tx) error) error {
		return s.core.Change(call, func(tx *meta.Tx) error {
			now, err := databases.DatabaseOf(tx, source.Organization, source.ID)
			if err != nil {
				return err
			}
			if err := refuseRemoved(tx, &p); err != nil {
				return err
			}
			made, err = insertCopy(tx, insert, db.ID, func(d *model.Database) { copyProperties(d, now) })
			if err != nil {
				return err
			}
			return tx.Operations().Insert(op)
		})
	})
	if err != nil {
		s.core.Space.Release(op.ID)
		return op, core.ExplainDiskFull(err)
	}
	s.core.Work.Go(func() {
		defer releaseBackups()
		defer release()
		defer s.core.Space.Release(op.ID)
		defer s.databases.Progress.Drop(op.ID)
		s.runRestoreNew(s.core.Lifetime, call, made, op, p)
	})
	return op, nil
}

// insertCopy inserts the record of a new database that is made from the data of another, and returns it. set gives it the
// properties of the record that the other has in this transaction: the request may have waited since it read that.
func insertCopy(tx *meta.Tx, insert func(*meta.Tx) error, id string, set func(*model.Database)) (model.Database, error) {
	if err := insert(tx); err != nil {
		return model.Database{}, err
	}
	return tx.Databases().Update(id, func(d *model.Database) error {
		set(d)
		return nil
	})
}

// copyProperties gives a new database, made from the data of another, what clients and the operator have set for that one.
func copyProperties(to *model.Database, from model.Database) {
	to.Settings, to.OwnSettings, to.Preload = from.Settings, from.OwnSettings, from.Preload
	to.ConnectionLimit, to.MaintenanceWindow = from.ConnectionLimit, from.MaintenanceWindow
	to.BackupEvery, to.BackupRetention = from.BackupEvery, from.BackupRetention
	to.Roles = from.CopiedRoles(to.CreatedAt)
	to.Allowlist = from.Allowlist
}

// runRestoreNew builds the new database and records the outcome. When the
// appliance stops, the next start rolls it back.
func (s *Service) runRestoreNew(ctx context.Context, call *model.Call, db model.Database, op model.DatabaseOperation, p RestorePlan) {
	began := time.Now()
	building, ended := s.databases.Cancelable(ctx, op.ID)
	defer ended()
	err := because(building, ctx, s.buildRestored(building, db, op, &p))
	if err == nil {
		s.notePace(restorePaceSetting, p, p.unpacked, time.Since(began)-p.unpacked)
		err = s.core.Meta.Update(func(tx *meta.Tx) error {
			_, err := s.databases.ReleaseDatabase(tx, op, nil)
			return err
		})
	}
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		if err := s.ReceiveWAL(db); err != nil {
			s.core.Log.Error("receive WAL", "database", db.ID, "error", err)
		}
		s.BackUpIfOwed(db)
		return
	}
	s.abandonNew(building, ctx, db, op, err)
}

// abandonNew rolls back an operation that was to make a new database within building, and failed with cause.
func (s *Service) abandonNew(building, ctx context.Context, db model.Database, op model.DatabaseOperation, cause error) {
	cause = s.core.ExplainFailed(cause)
	s.logFailed(building, "a new database could not be made", "type", op.Type, "database", op.Database, "new", db.ID, "error", cause)
	failed := s.core.System(model.ActionDatabaseCreate, db.Organization, databases.DatabaseResource(db))
	if undoErr := s.databases.ForgetDatabase(ctx, failed, db, cause, nil); undoErr != nil {
		// The next start removes what is left.
		err := errors.Join(undoErr, s.core.Meta.Update(func(tx *meta.Tx) error { return s.databases.CloseOperation(tx, op.ID, cause) }))
		s.core.Log.Error("roll back a new database", "type", op.Type, "new", db.ID, "error", err)
	}
}

// buildRestored makes the new database's data directory, recovers it to the
// plan's target and starts its instance.
func (s *Service) buildRestored(ctx context.Context, db model.Database, op model.DatabaseOperation, p *RestorePlan) error {
	dir := s.databases.DataDirectory(db.ID, db.Generation)
	if err := os.MkdirAll(s.databases.DatabaseDirectory(db.ID), 0o700); err != nil {
		return fmt.Errorf("make database directory: %w", err)
	}
	if err := s.checkAndUnpack(ctx, p, op.ID, dir); err != nil {
		return err
	}
	if err := s.recoverPrivately(ctx, db, op, p, s.databases.EndCopiedPrepared); err != nil {
		return err
	}
	_, err := s.databases.StartInstance(ctx, db)
	return err
}
