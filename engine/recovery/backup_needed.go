package recovery

import (
	"context"
	"slices"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/model"
)

// BackUpIfOwed starts the backup that must follow a restore or a gap in the WAL,
// if the appliance stopped before it was made: the newest backup then predates
// that event. It also starts the first backup if that cannot wait.
func (s *Service) BackUpIfOwed(db model.Database) {
	if s.isFirstUrgent(db) {
		s.core.Background(func(ctx context.Context) { s.backUpFirst(ctx, db) })
		return
	}
	needed, err := s.needsBackup(db)
	if err != nil {
		s.core.Log.Error("check whether a backup is needed", "database", db.ID, "error", err)
	}
	if needed {
		s.backUpSoon(db.ID)
	}
}

func (s *Service) needsBackup(db model.Database) (bool, error) {
	backups, err := s.restorableBackups(db.ID)
	if err != nil || len(backups) == 0 {
		return false, err // the first backup is a scheduled one
	}
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return false, err
	}
	var gapEnd xlog.LSN
	if known, _ := archive.Generation(db.Generation); len(known.Gaps) > 0 {
		gapEnd = known.Gaps[len(known.Gaps)-1].To
	}
	for _, b := range backups {
		if start, err := xlog.ParseLSN(b.StartLSN); err == nil && b.Generation == db.Generation && start >= gapEnd {
			return false, nil
		}
	}
	return true, nil
}

// isFirstUrgent reports whether a database needs its first backup at once: without one, a copy off-site has nothing that the
// database could be rebuilt from. A branch has its parent there.
func (s *Service) isFirstUrgent(db model.Database) bool {
	if s.core.Config.Offsite.URL == "" || s.core.Config.BackupInterval <= 0 || db.Sandbox || db.Parent != "" {
		return false
	}
	return s.lacksBackup(db.ID)
}

// lacksBackup reports whether no backup of a database was tried, or those that were gave way to a request.
func (s *Service) lacksBackup(database string) bool {
	backups, err := s.backupsOf(database)
	return err == nil && !slices.ContainsFunc(backups, func(b model.Backup) bool { return !b.Cut })
}

// backUpFirst makes the first backup of a database after what is being done with it, and tries once more if that gave way
// to a request. After that it is up to the schedule.
func (s *Service) backUpFirst(ctx context.Context, db model.Database) {
	for range 2 {
		s.core.Claims.Await(ctx, db.ID, "")
		if _, err := s.databases.Record(db.ID); err != nil || ctx.Err() != nil || !s.lacksBackup(db.ID) {
			return
		}
		s.backUpScheduled(ctx, db)
	}
}
