package recovery

import (
	"context"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/model"
)

// unusedPatience is the age up to which a database that nobody has written to yet is left alone.
const unusedPatience = 24 * time.Hour

// unusedDetail says why the backup of an unused database is not verified yet.
const unusedDetail = "nobody has written to the database yet; the backup is verified once somebody has, or when the database is a day old"

// isUnused reports whether nobody has written to a database since it was created empty, at most a day ago. The scheduled
// backup of such a database waits for its verification and its export: a burst of creations would otherwise be followed
// by a minute of work on nothing. The answer is from the archive, so it is false unless that has all WAL.
func (s *Service) isUnused(ctx context.Context, db model.Database) bool {
	from, err := xlog.ParseLSN(db.Provisioned)
	if err != nil || db.Generation != 1 || !s.core.Clock().Before(db.CreatedAt.Add(unusedPatience)) {
		return false
	}
	until, checked := s.unusedUntil.Load(db.ID)
	if checked {
		from = until.(xlog.LSN)
	}
	status, receives := s.WALStatus(db.ID)
	if !s.databases.Rests(db.ID) && (!receives || !status.Healthy()) {
		return false
	}
	if checked && receives && status.Durable == from {
		return true
	}
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return false
	}
	const first = 1 // an initdb's timeline
	committed, end, err := archive.CommittedSince(ctx, db.Generation, first, from)
	if err == nil && !committed {
		s.unusedUntil.Store(db.ID, end)
	}
	return err == nil && !committed
}
