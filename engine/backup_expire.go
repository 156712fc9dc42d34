package engine

import (
	"errors"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// expiry returns when a backup may be removed, nil for never. newest is the
// newest good backup of its database: that one stays, and so do pinned ones.
// Taking a pin off needs no right to delete, so the time begins anew then. Failed attempts are kept as long, to be looked into.
func (e *Engine) expiry(b model.Backup, newest *model.Backup) *time.Time {
	if e.cfg.BackupRetention <= 0 || b.CompletedAt == nil || b.Pin != nil || newest != nil && newest.ID == b.ID {
		return nil
	}
	from := *b.CompletedAt
	if b.UnpinnedAt != nil && b.UnpinnedAt.After(from) {
		from = *b.UnpinnedAt
	}
	at := from.Add(e.cfg.BackupRetention)
	return &at
}

// newestGood returns the newest completed backup whose proof has not failed or,
// when there is no such one, the newest completed; nil when there is none.
func newestGood(tx *meta.Tx, database string) (*model.Backup, error) {
	newest, err := newestCompleted(tx, database)
	if err != nil || newest == nil || unfit(*newest) == 0 {
		return newest, err
	}
	all, err := allUnder(tx.Backups(), database)
	for _, b := range all {
		if b.Status == model.BackupCompleted && !b.Condemned && unfit(b) == 0 {
			return &b, err
		}
	}
	return newest, err
}

// withExpiry fills in what depends on the other backups of the database.
func (e *Engine) withExpiry(tx *meta.Tx, database string, backups ...*model.Backup) error {
	newest, err := newestGood(tx, database)
	if err != nil {
		return err
	}
	for _, b := range backups {
		b.ExpiresAt = e.expiry(*b, newest)
	}
	return nil
}

// expireBackups removes the backups of a database that have outlived their
// time. What is busy waits for the next sweep.
func (e *Engine) expireBackups(db model.Database) error {
	if expired, err := e.expiredBackups(db.ID); err != nil || len(expired) == 0 {
		return err
	}
	release, err := e.claims.take(backupClaim(db.ID), "the removal of expired backups")
	if err != nil {
		return nil
	}
	defer release()
	expired, err := e.expiredBackups(db.ID) // as it is now that it is ours
	for _, b := range expired {
		err = errors.Join(err, e.expireBackup(db, b))
	}
	e.collectBackups(e.ctx, db.ID)
	return err
}

func (e *Engine) expireBackup(db model.Database, b model.Backup) error {
	call := e.system(model.ActionBackupExpire, db.Organization, model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name})
	err := e.condemnBackup(call, db.ID, b.ID)
	if errors.Is(err, errPinned) { // since it was looked at
		return nil
	}
	if err != nil {
		return err
	}
	return e.dropBackup(db.ID, b.ID)
}

func (e *Engine) expiredBackups(database string) (expired []model.Backup, err error) {
	err = e.meta.View(func(tx *meta.Tx) error {
		all, err := allUnder(tx.Backups(), database)
		if err != nil {
			return err
		}
		newest, err := newestGood(tx, database)
		if err != nil {
			return err
		}
		for _, b := range all {
			if at := e.expiry(b, newest); at != nil && e.mayRemove(*at) {
				expired = append(expired, b)
			}
		}
		return nil
	})
	return expired, err
}
