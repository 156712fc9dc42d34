package recovery

import (
	"cmp"
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
	if err := s.removeBackup(call, database, id); err != nil {
		return err
	}
	s.CollectBackups(s.core.Lifetime, database)
	return nil
}

// removeBackup removes a backup. It may do so while another is being made, but not during a restore.
func (s *Service) removeBackup(call *model.Call, database, id string) error {
	mayMark := func() error { return nil }
	release, err := s.core.Claims.Take(databases.BackupClaim(database), "the removal of a backup")
	switch {
	case err == nil:
		defer release()
	case !s.core.Claims.Holds(databases.BackupClaim(database), BackupClaim):
		return err
	default:
		mayMark = func() error {
			if !s.core.Claims.Holds(databases.BackupClaim(database), BackupClaim) {
				return errBackupEnded
			}
			return nil
		}
	}
	err = s.markForDeletion(call, database, id, mayMark)
	if errors.Is(err, errBackupEnded) {
		return s.removeBackup(call, database, id)
	}
	if err != nil {
		return err
	}
	return s.dropBackup(database, id)
}

// errBackupEnded means that the backup beside which another was to be removed has ended, perhaps for a restore.
var errBackupEnded = errors.New("the backup has ended")

// refuseRemoved refuses to record a restore whose backup has been removed, or is being, since it was planned. A removal
// that is recorded later sees the claim of the restore.
func refuseRemoved(tx *meta.Tx, p *RestorePlan) error {
	if p == nil {
		return nil
	}
	_, err := backupOf(tx, p.Backup.Database, p.Backup.ID)
	return err
}

// MarkForDeletion commits that the deletion of a backup is pending, and cancels
// its verification.
func (s *Service) MarkForDeletion(call *model.Call, database, id string) error {
	return s.markForDeletion(call, database, id, func() error { return nil })
}

// markForDeletion is MarkForDeletion if may returns nil in the transaction that commits it.
func (s *Service) markForDeletion(call *model.Call, database, id string, may func() error) error {
	err := s.core.Change(call, func(tx *meta.Tx) error {
		if err := cmp.Or(s.core.RenewAuthority(tx, call), may()); err != nil {
			return err
		}
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

// dropStored removes a backup from the repository, if it is there, once what says so is durable.
func (s *Service) dropStored(database, id string) error {
	if err := s.core.Meta.Durable(); err != nil {
		return err
	}
	repo, err := s.Repository(database)
	if err != nil {
		return err
	}
	defer s.archives.changed(database)
	return repo.Delete(id)
}
