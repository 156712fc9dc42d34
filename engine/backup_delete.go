package engine

import (
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BackupDelete removes a backup that is not being made or restored. When the
// appliance dies in the middle the next start carries on.
func (e *Engine) BackupDelete(call *model.Call, database, id string) error {
	if _, err := e.BackupGet(call, database, id); err != nil {
		return err
	}
	// One may go while another is being made, but not while one is restored.
	release, err := e.claims.take(backupClaim(database), "the removal of a backup")
	if err == nil {
		defer release()
	} else if !e.claims.holds(backupClaim(database), backing) {
		return err
	}
	if err := e.condemnBackup(call, database, id); err != nil {
		return err
	}
	if err := e.dropBackup(database, id); err != nil {
		return err
	}
	e.collectBackups(e.ctx, database)
	return nil
}

// condemnBackup commits that a backup is to be removed, and ends its proof.
func (e *Engine) condemnBackup(call *model.Call, database, id string) error {
	err := e.change(call, func(tx *meta.Tx) error {
		b, err := backupOf(tx, database, id)
		if err != nil {
			return err
		}
		if b.Pin != nil {
			return errPinned
		}
		if b.Status == model.BackupPending || b.Status == model.BackupRunning {
			return model.Errorf(model.CodeConflict, "this backup is being made; try again when it is done")
		}
		_, err = tx.Backups().Update(id, func(b *model.Backup) error {
			b.Condemned = true
			return nil
		})
		return err
	})
	if err == nil {
		e.cancels.cancel(proofOf(id), errUnwanted)
	}
	return err
}

var errPinned = model.Errorf(model.CodeConflict, "this backup is pinned; unpin it first")

// dropBackup removes a condemned backup from the repository, if it is there,
// and then its record. What only it needed is garbage then.
func (e *Engine) dropBackup(database, id string) error {
	if err := e.dropStored(database, id); err != nil {
		return err
	}
	return e.meta.Update(func(tx *meta.Tx) error { return tx.Backups().Delete(id) })
}

// dropStored removes a backup from the repository, if it is there.
func (e *Engine) dropStored(database, id string) error {
	repo, err := e.repository(database)
	if err != nil {
		return err
	}
	return repo.Delete(id)
}
