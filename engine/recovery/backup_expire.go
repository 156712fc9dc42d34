package recovery

import (
	"errors"
	"slices"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// expiry returns when a backup may be removed, nil for never; a retention of 0 keeps it for ever. followed says which
// backups of the database are good, see [followedAt].
//
// Times are restored from the good backup before them. So a good backup stays until the next one is as old as the
// retention, and the whole retention can be restored, however rarely backups are made. The newest good backup never
// expires, nor does the newest one that leads to the present data, and neither do pinned ones. Unpinning restarts the
// retention period, because it does not need the permission to delete. Failed backups are kept so that they can be examined.
func expiry(b model.Backup, retention time.Duration, followed map[string]time.Time) *time.Time {
	if retention <= 0 || b.CompletedAt == nil || b.Pin != nil {
		return nil
	}
	from := *b.CompletedAt
	if b.UnpinnedAt != nil && b.UnpinnedAt.After(from) {
		from = *b.UnpinnedAt
	}
	next, good := followed[b.ID]
	if good && next.IsZero() {
		return nil
	}
	if next.After(from) {
		from = next
	}
	at := from.Add(retention)
	return &at
}

// followedAt maps the good ones among the backups of a database, which are newest first, to the time at which the next
// good one was complete: zero for the newest, and for the newest of those that lead to the present data. Good are the
// completed ones whose verification has not failed, else the newest completed one. One that by its time was made before the
// one that it follows, because the clock was set back, does not count as the next: when it was made is not known.
func followedAt(all []model.Backup, leads func(model.Backup) bool) map[string]time.Time {
	completed := slices.DeleteFunc(slices.Clone(all), func(b model.Backup) bool { return b.Status != model.BackupCompleted || b.DeletionPending })
	good := slices.DeleteFunc(slices.Clone(completed), func(b model.Backup) bool { return verificationRank(b) > 0 })
	if len(good) == 0 {
		good = completed[:min(1, len(completed))]
	}
	followed := make(map[string]time.Time, len(good))
	for i, b := range good {
		var next time.Time
		for _, newer := range slices.Backward(good[:i]) {
			if next = *newer.CompletedAt; !next.Before(*b.CompletedAt) {
				break
			}
			next = time.Time{}
		}
		followed[b.ID] = next
	}
	if i := slices.IndexFunc(good, leads); i >= 0 {
		followed[good[i].ID] = time.Time{}
	}
	return followed
}

// leadsToPresent returns a function that reports whether the WAL leads from a backup to the present data of the database,
// without a gap.
func (s *Service) leadsToPresent(database string) (func(model.Backup) bool, error) {
	db, err := s.databases.Record(database)
	if err != nil || db.Sandbox || s.isAway(database) {
		return anyBackup, err
	}
	archive, err := s.WALArchive(database)
	return func(b model.Backup) bool { return reaches(archive, b, db.Generation) }, err
}

func anyBackup(model.Backup) bool { return true }

// withExpiry sets ExpiresAt, which depends on the other backups of the database.
func (s *Service) withExpiry(tx *meta.Tx, database string, leads func(model.Backup) bool, backups ...*model.Backup) error {
	all, err := core.AllUnder(tx.Backups(), database)
	if err != nil {
		return err
	}
	retention, err := s.retention(tx, database)
	followed := followedAt(all, leads)
	for _, b := range backups {
		b.ExpiresAt = expiry(*b, retention, followed)
	}
	return err
}

// retention returns how long the backups of a database are kept, 0 for ever.
func (s *Service) retention(tx *meta.Tx, database string) (time.Duration, error) {
	db, err := tx.Databases().Get(database)
	return s.databases.BackupRetention(db), err
}

// ExpireBackups removes the expired backups of a database, and finishes deletions that have failed. If the backups are busy,
// the next sweep does it.
func (s *Service) ExpireBackups(db model.Database) error {
	if s.isAway(db.ID) {
		return nil
	}
	if expired, err := s.expiredBackups(db.ID, anyBackup); err != nil || len(expired) == 0 { // at most these, and no archive is opened
		return err
	}
	release, err := s.core.Claims.Take(databases.BackupClaim(db.ID), "the removal of expired backups")
	if err != nil {
		return nil
	}
	defer release()
	leads, err := s.leadsToPresent(db.ID)
	if err != nil {
		return err
	}
	expired, err := s.expiredBackups(db.ID, leads) // again, now with the claim
	if err != nil || len(expired) == 0 {
		return err
	}
	for _, b := range expired {
		err = errors.Join(err, s.expireBackup(db, b))
	}
	release() // a restore need not wait for the collection, which spares what is being read
	s.CollectBackups(s.core.Lifetime, db.ID)
	return err
}

func (s *Service) expireBackup(db model.Database, b model.Backup) error {
	if b.DeletionPending {
		return s.dropBackup(db.ID, b.ID)
	}
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

// expiredBackups returns the backups of a database that have expired, and those whose deletion has failed half-way.
func (s *Service) expiredBackups(database string, leads func(model.Backup) bool) (expired []model.Backup, err error) {
	err = s.core.Meta.View(func(tx *meta.Tx) error {
		all, err := core.AllUnder(tx.Backups(), database)
		if err != nil {
			return err
		}
		retention, err := s.retention(tx, database)
		if err != nil {
			return err
		}
		followed := followedAt(all, leads)
		for _, b := range all {
			if at := expiry(b, retention, followed); b.DeletionPending || at != nil && s.core.MayRemove(*at) {
				expired = append(expired, b)
			}
		}
		return nil
	})
	return expired, err
}
