package engine

import (
	"fmt"
	"os"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BackupDelete removes a backup that is not being made or restored. When the
// appliance dies after the record is gone, the next start removes the rest.
func (e *Engine) BackupDelete(call *model.Call, database, id string) error {
	if _, err := e.BackupGet(call, database, id); err != nil {
		return err
	}
	release, err := e.claims.take(backupClaim(database), "a backup or a restore")
	if err != nil {
		return err
	}
	defer release()
	err = e.change(call, func(tx *meta.Tx) error {
		b, err := backupOf(tx, database, id)
		if err != nil {
			return err
		}
		return tx.Backups().Delete(b.ID)
	})
	if err != nil {
		return err
	}
	if err := e.dropBackup(database, id); err != nil {
		return err
	}
	e.collectBackups(e.ctx, database)
	return nil
}

// dropBackup removes a backup, if it is there. What only it needed is garbage
// then.
func (e *Engine) dropBackup(database, id string) error {
	repo, err := e.repository(database)
	if err != nil {
		return err
	}
	if err := repo.Delete(id); err != nil {
		return err
	}
	if err := os.RemoveAll(e.walDirectory(database, id)); err != nil {
		return fmt.Errorf("remove WAL of a backup: %w", err)
	}
	return nil
}
