package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// deleting is what backups are claimed for.
const deleting = "the deletion"

// DatabaseDelete stops the database and moves it with its backups to the
// trash. It returns until when the operator can bring it back. A running
// backup is cancelled; so is the import that fills the database, of which
// nothing is left then.
func (e *Engine) DatabaseDelete(ctx context.Context, call *model.Call, id string) (time.Time, error) {
	if _, err := e.database(call, id); err != nil {
		return time.Time{}, err
	}
	if e.cancels.cancel(importClaim(id), model.Errorf(model.CodeConflict, "the import was cancelled: its database was deleted")) {
		if _, err := e.record(id); errors.Is(err, meta.ErrNotFound) {
			return e.clock(), e.change(call, func(*meta.Tx) error { return nil })
		}
	}
	release, err := e.claims.take(id, "another operation")
	if err != nil {
		return time.Time{}, err
	}
	defer release()
	releaseBackups, err := e.claimBackups(id, deleting)
	if err != nil {
		return time.Time{}, err
	}
	defer releaseBackups()
	db, err := e.database(call, id)
	if err != nil {
		return time.Time{}, err
	}
	op, err := e.beginOperation(db, model.OperationDelete, model.DatabaseDeleting, "stopping")
	if err != nil {
		return time.Time{}, noRoom(err)
	}
	e.cancels.cancel(proofOf(db.ID), errUnwanted)
	e.cancels.cancel(sandboxClaim(db.ID), errSandboxDeleted)
	return e.finishDelete(ctx, call, db, op.ID)
}

// finishDelete is the part of a delete that the next start carries on with
// when the appliance dies in the middle.
func (e *Engine) finishDelete(ctx context.Context, call *model.Call, db model.Database, op string) (time.Time, error) {
	if err := e.stopInstance(ctx, db.ID); err != nil {
		return time.Time{}, err
	}
	now := e.clock()
	retention := e.cfg.TrashRetention
	if db.Sandbox {
		retention = 0
	}
	trash := model.Trash{At: now, Until: now.Add(retention)}
	discard := func(tx *meta.Tx) error {
		if err := e.closeOperation(tx, op, nil); err != nil {
			return err
		}
		_, err := tx.Databases().Update(db.ID, func(d *model.Database) error {
			d.Operation, d.Status, d.Trash, d.UpdatedAt = "", model.DatabaseAvailable, &trash, now
			return nil
		})
		return err
	}
	if err := e.recordLater(e.change(call, discard), "the end of a database", discard); err != nil {
		return time.Time{}, err
	}
	if retention <= 0 {
		return trash.Until, e.purge(e.system(model.ActionTrashExpire, db.Organization, databaseResource(db)), db)
	}
	return trash.Until, nil
}

// purge removes a database in the trash for good: its files first, so that
// its record, the tombstone, is there until nothing else is. One whose removal
// was interrupted cannot be brought back; the next sweep goes on with it. The
// call's entry is committed with the end of the record.
func (e *Engine) purge(call *model.Call, db model.Database) error {
	if err := e.meta.Update(func(tx *meta.Tx) error { return e.beginPurge(tx, db.ID) }); err != nil {
		return err
	}
	if err := os.RemoveAll(e.databaseDirectory(db.ID)); err != nil {
		return fmt.Errorf("remove database directory: %w", err)
	}
	if err := e.backups.RemoveBackups(db.ID); err != nil {
		return err
	}
	if err := e.change(call, func(tx *meta.Tx) error { return purgeRecords(tx, db.ID) }); err != nil {
		return err
	}
	e.metrics.drop(db.ID)
	return e.removeDiscarded()
}

// beginPurge ends the time in which a deleted database can be brought back.
// It may have been since the caller looked.
func (e *Engine) beginPurge(tx *meta.Tx, id string) error {
	_, err := tx.Databases().Update(id, func(d *model.Database) error {
		if d.Trash == nil {
			return model.Errorf(model.CodeConflict, "the database %s was brought back from the trash", d.Name)
		}
		d.Trash = &model.Trash{At: d.Trash.At, Until: d.Trash.At}
		return nil
	})
	return err
}

func purgeRecords(tx *meta.Tx, database string) error {
	backups, err := allUnder(tx.Backups(), database)
	if err != nil {
		return err
	}
	for _, b := range backups {
		if err := tx.Backups().Delete(b.ID); err != nil {
			return err
		}
	}
	exports, err := allUnder(tx.Exports(), database)
	if err != nil {
		return err
	}
	for _, x := range exports {
		if err := dropExport(tx, x); err != nil {
			return err
		}
	}
	operations, err := allUnder(tx.Operations(), database)
	if err != nil {
		return err
	}
	for _, op := range operations {
		if err := tx.Operations().Delete(op.ID); err != nil {
			return err
		}
	}
	if err := tx.DropSamples(database); err != nil {
		return err
	}
	return tx.Databases().Delete(database)
}

// allUnder returns every record of a table that belongs to the database.
func allUnder[T any](table meta.Table[T], database string) ([]T, error) {
	return allBy(table, meta.ByDatabase, meta.Key(database))
}

// allBy returns every record of a table that its index has under key.
func allBy[T any](table meta.Table[T], index string, key []byte) ([]T, error) {
	const all = 1 << 30
	records, _, err := table.Newest(index, key, "", all)
	return records, err
}
