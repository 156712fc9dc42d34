package recovery

import (
	"errors"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BackupFilter selects backups. An empty field selects all.
type BackupFilter struct {
	CreatedAfter, CreatedBefore time.Time // both exclusive
	Type                        model.BackupType
	Status                      model.BackupStatus
}

func (f BackupFilter) admits(b model.Backup) bool {
	created := core.Filter{CreatedAfter: f.CreatedAfter, CreatedBefore: f.CreatedBefore}
	return created.Admits("", "", b.StartedAt) && core.Equals(f.Type, b.Type) && core.Equals(f.Status, b.Status)
}

// BackupList returns the backups of a database that match the filter.
func (s *Service) BackupList(call *model.Call, database string, filter BackupFilter, page core.Page) (core.List[model.Backup], error) {
	selection := core.Select(filter, filter.admits)
	w, err := selection.Walk(s.core, call, model.ActionBackupList, page, database)
	if err != nil {
		return core.List[model.Backup]{}, err
	}
	if _, err := s.databases.Database(call, database); err != nil {
		return core.List[model.Backup]{}, err
	}
	list, err := core.WalkRecords(s.core.Meta.View, w, (*meta.Tx).Backups, meta.ByDatabase, database, selection)
	if err != nil {
		return list, err
	}
	backups := make([]*model.Backup, len(list.Items))
	for i := range list.Items {
		backups[i] = &list.Items[i]
		backups[i].Progress = s.databases.Progress.Get(backups[i].ID, backups[i].Progress)
	}
	leads, err := s.leadsToPresent(database)
	if err != nil {
		return list, err
	}
	return list, s.core.Meta.View(func(tx *meta.Tx) error { return s.withExpiry(tx, database, leads, backups...) })
}

// BackupGet returns one backup of a database.
func (s *Service) BackupGet(call *model.Call, database, id string) (model.Backup, error) {
	if _, err := s.databases.Database(call, database); err != nil {
		return model.Backup{}, err
	}
	leads, err := s.leadsToPresent(database)
	if err != nil {
		return model.Backup{}, err
	}
	var b model.Backup
	err = s.core.Meta.View(func(tx *meta.Tx) (err error) {
		if b, err = backupOf(tx, database, id); err != nil {
			return err
		}
		return s.withExpiry(tx, database, leads, &b)
	})
	call.Resource = model.Resource{Type: model.ResourceBackup, ID: id}
	b.Progress = s.databases.Progress.Get(b.ID, b.Progress)
	return b, err
}

// mustBeCompleted refuses to restore or pin a backup that is not completed. The
// error's code says whether it may still complete.
func mustBeCompleted(b model.Backup, use string) error {
	switch b.Status {
	case model.BackupCompleted:
		return nil
	case model.BackupFailed:
		return model.Errorf(model.CodeForbidden, "this backup has failed; only a completed one can be %s", use)
	default:
		return model.Errorf(model.CodeConflict, "this backup is %s; it can be %s once it is completed", b.Status, use)
	}
}

// backupOf returns the backup with id if it belongs to the database.
func backupOf(tx *meta.Tx, database, id string) (model.Backup, error) {
	b, err := tx.Backups().Get(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && (b.Database != database || b.DeletionPending) {
		return model.Backup{}, model.Errorf(model.CodeNotFound, "no backup %q of this database", id)
	}
	return b, err
}
