package recovery

import (
	"context"
	"time"
)

// Offsite is what this package needs of the recovery from an off-site copy.
type Offsite interface {
	// Recovers reports whether a database has yet to be brought back from the copy.
	Recovers(database string) bool
	// Left reports whether a database stays in the copy because others were chosen.
	Left(database string) bool
	// Away reports whether files of a database's backups are still in the store alone.
	Away(database string) bool
	// Fetch brings them here. It can be repeated.
	Fetch(ctx context.Context, database string, progress func(done, total int64)) error
	// Rebuilding notes the time of the last commit that a database will have once its rebuild switches to it, nil if unknown:
	// an appliance that dies right after the switch does not call Rebuilt.
	Rebuilding(database string, last *time.Time)
	// Rebuilt notes the end of the rebuild of a database: the time of its last commit, nil if unknown, or why
	// it failed.
	Rebuilt(database string, last *time.Time, cause error)
}

// Connect sets the recovery from an off-site copy that is under way. It is called before the start.
func (s *Service) Connect(o Offsite) { s.offsite = o }

// isRecovered reports whether the database is brought back from an off-site copy.
func (s *Service) isRecovered(database string) bool {
	return s.offsite != nil && s.offsite.Recovers(database)
}

// isAway reports whether the files of a database's backups are not all here. Then they
// are neither judged nor removed.
func (s *Service) isAway(database string) bool {
	return s.offsite != nil && s.offsite.Away(database)
}

// FetchBackups brings the files of a database's backups here from the off-site copy, and
// reconciles them with their records.
func (s *Service) FetchBackups(ctx context.Context, database string, progress func(done, total int64)) error {
	if err := s.offsite.Fetch(ctx, database, progress); err != nil {
		return err
	}
	// What was open before does not know of the new files.
	if err := s.reopenArchives(database); err != nil {
		return err
	}
	db, err := s.databases.Record(database)
	if err != nil {
		return err
	}
	if err := s.reconcileRepository(db); err != nil {
		return err
	}
	return s.RecoverBackups(database)
}

// reopenArchives closes the repository and the WAL archive of a database, so that the next use opens them again.
func (s *Service) reopenArchives(database string) error {
	a := s.archives.get(database)
	a.mu.Lock()
	defer a.mu.Unlock()
	defer s.archives.changed(database)
	return a.closeParts()
}
