package recovery

import (
	"holdfast/backup/wal/xlog"
	"holdfast/engine/model"
)

// BackUpIfOwed has a backup made that a restore or a gap called for before the
// appliance ended: the newest is of the data from before it.
func (s *Service) BackUpIfOwed(db model.Database) {
	owed, err := s.owesBackup(db)
	if err != nil {
		s.core.Log.Error("see whether a backup is owed", "database", db.ID, "error", err)
	}
	if owed {
		s.backUpSoon(db.ID)
	}
}

func (s *Service) owesBackup(db model.Database) (bool, error) {
	backups, err := s.restorableBackups(db.ID)
	if err != nil || len(backups) == 0 {
		return false, err // the first is the schedule's
	}
	archive, err := s.WalArchive(db.ID)
	if err != nil {
		return false, err
	}
	var behind xlog.LSN
	if known, _ := archive.Generation(db.Generation); len(known.Gaps) > 0 {
		behind = known.Gaps[len(known.Gaps)-1].To
	}
	for _, b := range backups {
		if start, err := xlog.ParseLSN(b.StartLSN); err == nil && b.Generation == db.Generation && start >= behind {
			return false, nil
		}
	}
	return true, nil
}
