package recovery

import (
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BackupDelete removes a backup that is not being made or restored. If the
// appliance dies in between, the next start finishes it.
func (s *Service) BackupDelete(call *model.Call, database, id string) error {
	if _, err := s.BackupGet(call, database, id); err != nil {
		return err
	}
	if err := s.refuseAway(database); err != nil {
		return err
	}
	// A backup may be removed while another is being made, but not during a restore.
	release, err := s.core.Claims.Take(databases.BackupClaim(database), "the removal of a backup")
	if err == nil {
		defer release()
	} else if !s.core.Claims.Holds(databases.BackupClaim(database), BackupClaim) {
		return err
	}
	if err := s.MarkForDeletion(call, database, id); err != nil {
		return err
	}
	if err := s.dropBackup(database, id); err != nil {
		return err
	}
	s.CollectBackups(s.core.Lifetime, database)
	return nil
}

// MarkForDeletion commits that the deletion of a backup is pending, and cancels
// its verification.
func (s *Service) MarkForDeletion(call *model.Call, database, id string) error {
	err := s.core.Change(call, func(tx *meta.Tx) error {
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
		return tx.Backups().Change(id, func(b *model.Backup) { b.DeletionPending = true })
	})
	if err == nil {
		s.core.Cancels.Cancel(databases.VerificationClaim(id), core.ErrUnwanted)
	}
	return err
}

var errPinned = model.Errorf(model.CodeConflict, "this backup is pinned; unpin it first")

// dropBackup removes a backup whose deletion is pending from the repository, if it is there, and then its record.
// CollectBackups removes the chunks that only this backup needed.
func (s *Service) dropBackup(database, id string) error {
	if err := s.dropStored(database, id); err != nil {
		return err
	}
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		if err := tx.Backups().Delete(id); !errors.Is(err, meta.ErrNotFound) { // otherwise the sweep has finished the deletion
			return err
		}
		return nil
	})
}

// dropStored removes a backup from the repository, if it is there.
func (s *Service) dropStored(database, id string) error {
	repo, err := s.Repository(database)
	if err != nil {
		return err
	}
	defer s.archives.changed(database)
	return repo.Delete(id)
}
