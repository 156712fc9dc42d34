package recovery

import (
	"errors"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// expiry returns when a backup may be removed that is kept for retention, nil for never; 0 keeps it for ever. newest is
// the newest good backup of its database: it never expires, and neither do pinned ones. Unpinning restarts the retention period, because it does not need the
// permission to delete. Failed backups are kept as long, so that they can be examined.
func expiry(b model.Backup, retention time.Duration, newest *model.Backup) *time.Time {
	if retention <= 0 || b.CompletedAt == nil || b.Pin != nil || newest != nil && newest.ID == b.ID {
		return nil
	}
	from := *b.CompletedAt
	if b.UnpinnedAt != nil && b.UnpinnedAt.After(from) {
		from = *b.UnpinnedAt
	}
	at := from.Add(retention)
	return &at
}

// newestGood returns the newest completed backup whose verification has not
// failed, else the newest completed one, else nil.
func newestGood(tx *meta.Tx, database string) (*model.Backup, error) {
	newest, err := databases.NewestCompleted(tx, database)
	if err != nil || newest == nil || verificationRank(*newest) == 0 {
		return newest, err
	}
	all, err := core.AllUnder(tx.Backups(), database)
	for _, b := range all {
		if b.Status == model.BackupCompleted && !b.DeletionPending && verificationRank(b) == 0 {
			return &b, err
		}
	}
	return newest, err
}

// withExpiry sets ExpiresAt, which depends on the other backups of the database.
func (s *Service) withExpiry(tx *meta.Tx, database string, backups ...*model.Backup) error {
	newest, err := newestGood(tx, database)
	if err != nil {
		return err
	}
	retention, err := s.retention(tx, database)
	if err != nil {
		return err
	}
	for _, b := range backups {
		b.ExpiresAt = expiry(*b, retention, newest)
	}
	return nil
}

// retention returns how long the backups of a database are kept, 0 for ever.
func (s *Service) retention(tx *meta.Tx, database string) (time.Duration, error) {
	db, err := tx.Databases().Get(database)
	return s.databases.BackupRetention(db), err
}

// ExpireBackups removes the expired backups of a database. If the backups are busy, the next sweep does it.
func (s *Service) ExpireBackups(db model.Database) error {
	if expired, err := s.expiredBackups(db.ID); err != nil || s.isAway(db.ID) || len(expired) == 0 {
		return err
	}
	release, err := s.core.Claims.Take(databases.BackupClaim(db.ID), "the removal of expired backups")
	if err != nil {
		return nil
	}
	defer release()
	expired, err := s.expiredBackups(db.ID) // again, now with the claim
	for _, b := range expired {
		err = errors.Join(err, s.expireBackup(db, b))
	}
	s.CollectBackups(s.core.Lifetime, db.ID)
	return err
}

func (s *Service) expireBackup(db model.Database, b model.Backup) error {
	call := s.core.System(model.ActionBackupExpire, db.Organization, model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name})
	err := s.MarkForDeletion(call, db.ID, b.ID)
	if errors.Is(err, errPinned) { // pinned since it was listed
		return nil
	}
	if err != nil {
		return err
	}
	return s.dropBackup(db.ID, b.ID)
}

func (s *Service) expiredBackups(database string) (expired []model.Backup, err error) {
	err = s.core.Meta.View(func(tx *meta.Tx) error {
		all, err := core.AllUnder(tx.Backups(), database)
		if err != nil {
			return err
		}
		newest, err := newestGood(tx, database)
		if err != nil {
			return err
		}
		retention, err := s.retention(tx, database)
		if err != nil {
			return err
		}
		for _, b := range all {
			if at := expiry(b, retention, newest); at != nil && s.core.MayRemove(*at) {
				expired = append(expired, b)
			}
		}
		return nil
	})
	return expired, err
}
