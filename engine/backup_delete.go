package engine

import (
	"encoding/json"
	"fmt"

	"holdfast/backup"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BackupDelete removes a backup that is not being made or restored.
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
		if b.Pin != nil {
			return errPinned
		}
		return dropBackup(tx, b)
	})
	if err != nil {
		return err
	}
	return e.removeDiscarded()
}

// dropBackup removes a backup's record and discards its blobs.
func dropBackup(tx *meta.Tx, b model.Backup) error {
	if b.Status == model.BackupCompleted {
		source, err := backupSource(b)
		if err != nil {
			return err
		}
		for _, ref := range source.Refs() {
			if err := tx.DiscardBlob(string(ref)); err != nil {
				return err
			}
		}
	}
	return tx.Backups().Delete(b.ID)
}

// backupSource returns what package backup knows of a completed backup.
func backupSource(b model.Backup) (backup.Result, error) {
	var source backup.Result
	if err := json.Unmarshal(b.Source, &source); err != nil {
		return source, fmt.Errorf("decode backup %s: %w", b.ID, err)
	}
	return source, nil
}
