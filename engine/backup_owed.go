package engine

import (
	"holdfast/backup/wal/xlog"
	"holdfast/engine/model"
)

// BackUpIfOwed has a backup made that a restore or a gap called for before the
// appliance ended: the newest is of the data from before it.
func (e *Engine) BackUpIfOwed(db model.Database) {
	owed, err := e.owesBackup(db)
	if err != nil {
		e.log.Error("see whether a backup is owed", "database", db.ID, "error", err)
	}
	if owed {
		e.backUpSoon(db.ID)
	}
}

// isUnprotected reports whether a database, as recorded, is to have a
// completed backup and has none. A sandbox is to have none, and what is being
// made, imported or deleted cannot have one.
func isUnprotected(db model.Database, newest *model.Backup) bool {
	switch db.Status {
	case model.DatabaseCreating, model.DatabaseImporting, model.DatabaseDeleting:
		return false
	default:
		return newest == nil && !db.Sandbox
	}
}

func (e *Engine) owesBackup(db model.Database) (bool, error) {
	backups, err := e.restorableBackups(db.ID)
	if err != nil || len(backups) == 0 {
		return false, err // the first is the schedule's
	}
	archive, err := e.walArchive(db.ID)
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
