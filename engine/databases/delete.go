package databases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Delete stops the database and moves it to the trash with its backups. It
// returns the time until which it can be restored. A running backup is
// cancelled. So is an import that is filling the database; the import then removes
// the database itself. A database with branches is not deleted.
func (s *Service) Delete(ctx context.Context, call *model.Call, id string) (time.Time, error) {
	return s.delete(ctx, call, id, func(model.Database) error { return nil })
}

// delete is Delete, unless allowed refuses the claimed database.
func (s *Service) delete(ctx context.Context, call *model.Call, id string, allowed func(model.Database) error) (time.Time, error) {
	db, err := s.Database(call, id)
	if err == nil {
		err = call.Match(db.Tag())
	}
	if err != nil {
		return time.Time{}, err
	}
	if s.core.Cancels.Cancel(ImportClaim(id), model.Errorf(model.CodeConflict, "the import was cancelled: its database was deleted")) {
		if _, err := s.Record(id); errors.Is(err, meta.ErrNotFound) {
			return s.core.Clock(), s.core.Change(call, func(*meta.Tx) error { return nil })
		}
	}
	release, err := s.core.Claims.Take(id, "another operation")
	if err != nil {
		return time.Time{}, err
	}
	defer release()
	if err := s.refuseDelete(call, id, allowed); err != nil { // before it cancels a backup
		return time.Time{}, err
	}
	releaseBackups, err := s.ClaimBackups(id, deleting)
	if err != nil {
		return time.Time{}, err
	}
	defer releaseBackups()
	if db, err = s.claimed(call, id); err != nil {
		return time.Time{}, err
	}
	if db.Status != model.DatabaseDeleting { // otherwise an earlier deletion failed
		if db.Operation, err = s.beginDelete(db); err != nil {
			return time.Time{}, core.ExplainDiskFull(err)
		}
	}
	s.core.Cancels.Cancel(VerificationClaim(db.ID), core.ErrUnwanted)
	s.core.Cancels.Cancel(sandboxClaim(db.ID), errSandboxDeleted)
	return s.finishDelete(ctx, call, db, db.Operation)
}

// refuseDelete refuses a deletion of a claimed database that may not go on.
func (s *Service) refuseDelete(call *model.Call, id string, allowed func(model.Database) error) error {
	db, err := s.claimed(call, id)
	if err == nil {
		err = cmp.Or(call.Match(db.Tag()), allowed(db))
	}
	if err != nil || db.Status == model.DatabaseDeleting {
		return err
	}
	return s.core.Meta.View(func(tx *meta.Tx) error { return refuseBranched(tx, db) })
}

// beginDelete records that a claimed database is being deleted, and returns the id of
// the operation.
func (s *Service) beginDelete(db model.Database) (string, error) {
	op := s.NewOperation(db, model.OperationDelete, "stopping")
	return op.ID, s.core.Meta.Update(func(tx *meta.Tx) error {
		if err := refuseBranched(tx, db); err != nil {
			return err
		}
		return InsertOperation(tx, op, model.DatabaseDeleting)
	})
}

// RetryDelete carries on with a deletion that failed. While another operation holds
// the database, it does nothing.
func (s *Service) RetryDelete(ctx context.Context, id string) error {
	release, err := s.core.Claims.Take(id, "its deletion")
	if err != nil {
		return nil // busy: the next sweep tries again
	}
	defer release()
	releaseBackups, err := s.ClaimBackups(id, deleting)
	if err != nil {
		return nil
	}
	defer releaseBackups()
	db, err := s.Record(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && db.Status != model.DatabaseDeleting {
		return nil // it was completed meanwhile
	}
	if err != nil {
		return err
	}
	call := s.core.System(model.ActionDatabaseDelete, db.Organization, DatabaseResource(db))
	_, err = s.finishDelete(ctx, call, db, db.Operation)
	return err
}

// finishDelete is the part of a deletion that the sweep repeats if it fails, and the
// next start if the appliance dies during it.
func (s *Service) finishDelete(ctx context.Context, call *model.Call, db model.Database, op string) (time.Time, error) {
	defer s.Progress.Drop(op)
	if err := s.StopInstance(ctx, db.ID); err != nil {
		return time.Time{}, err
	}
	s.Progress.Set(op, 1, 2)
	now := s.core.RetentionClock()
	retention := s.core.Config.TrashRetention
	if db.Sandbox {
		retention = 0
	}
	if retention > 0 {
		if err := s.backups.Drain(db); err != nil {
			s.core.Log.Warn("what a deleted database committed last may be missing in the archive until it is restored from the trash", "database", db.ID, "reason", err)
		}
	}
	trash := model.Trash{At: now, Until: now.Add(retention)}
	discard := func(tx *meta.Tx) error {
		o, err := tx.Operations().Get(op)
		if errors.Is(err, meta.ErrNotFound) || err == nil && o.Status.Final() {
			return nil // on a full disk: it was recorded by another attempt
		}
		if err != nil {
			return err
		}
		if err := s.CloseOperation(tx, op, nil); err != nil {
			return err
		}
		return tx.Databases().Change(db.ID, func(d *model.Database) {
			d.Operation, d.Status, d.Trash, d.UpdatedAt = "", model.DatabaseAvailable, &trash, now
		})
	}
	if err := s.core.RecordLater(s.core.Change(call, discard), "the end of a database", discard); err != nil {
		return time.Time{}, err
	}
	if retention <= 0 {
		return trash.Until, s.purge(s.core.System(model.ActionTrashExpire, db.Organization, DatabaseResource(db)), db, anyTrash)
	}
	return trash.Until, nil
}

// purge permanently removes a database in the trash. It removes the files first and
// the record, the tombstone, last. After an interrupted purge the database cannot
// be restored, and the next sweep continues. The call's audit entry is committed
// together with the removal of the record.
func (s *Service) purge(call *model.Call, db model.Database, may func(model.Trash) bool) error {
	if err := s.core.Meta.Update(func(tx *meta.Tx) error { return s.beginPurge(tx, db.ID, may) }); err != nil {
		return err
	}
	if err := os.RemoveAll(s.DatabaseDirectory(db.ID)); err != nil {
		return fmt.Errorf("remove database directory: %w", err)
	}
	if err := s.backups.RemoveBackups(db.ID); err != nil {
		return err
	}
	if err := s.core.Change(call, func(tx *meta.Tx) error { return purgeRecords(tx, db.ID, "") }); err != nil {
		return err
	}
	s.samples.drop(db.ID)
	return s.core.RemoveDiscarded()
}

// beginPurge ends the period in which a deleted database can be restored. It fails
// if the database was restored after the caller read the record, or may refuses what it is now.
func (s *Service) beginPurge(tx *meta.Tx, id string, may func(model.Trash) bool) error {
	_, err := tx.Databases().Update(id, func(d *model.Database) error {
		if d.Trash == nil || !may(*d.Trash) {
			return model.Errorf(model.CodeConflict, "the database %s was brought back from the trash", d.Name)
		}
		d.Trash = &model.Trash{At: d.Trash.At, Until: d.Trash.At}
		return nil
	})
	return err
}

// purgeRecords deletes the record of a database and of everything that belongs to
// it, except one operation.
func purgeRecords(tx *meta.Tx, database, except string) error {
	backups, err := core.AllUnder(tx.Backups(), database)
	if err != nil {
		return err
	}
	for _, b := range backups {
		if err := tx.Backups().Delete(b.ID); err != nil {
			return err
		}
	}
	exports, err := core.AllUnder(tx.Exports(), database)
	if err != nil {
		return err
	}
	for _, x := range exports {
		if err := DropExport(tx, x); err != nil {
			return err
		}
	}
	if err := DropOperations(tx, database, except); err != nil {
		return err
	}
	if err := tx.DropSamples(database); err != nil {
		return err
	}
	return tx.Databases().Delete(database)
}

// DropExport removes an export's record and discards its bytes.
func DropExport(tx *meta.Tx, x model.Export) error {
	if x.Blob != "" {
		if err := tx.DiscardBlob(x.Blob); err != nil {
			return err
		}
	}
	return tx.Exports().Delete(x.ID)
}
