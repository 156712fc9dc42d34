package recovery

import (
	"holdfast/backup/wal/xlog"
	"holdfast/engine/model"
)

// BackUpIfOwed starts the backup that must follow a restore or a gap in the WAL,
// if the appliance stopped before it was made: the newest backup then predates
// that event.
func (s *Service) BackUpIfOwed(db model.Database) {
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
