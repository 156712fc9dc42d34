package recovery

import (
	"cmp"
	"context"
	"slices"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
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
	// Warn adds a sentence about something that was lost to the report.
	Warn(text string)
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

// Unrecoverable returns the databases that a copy of the archives could not rebuild as they are, by id, and from when on it
// lacks everything: no backup that the copy has, as has reports, leads to the present data without a gap in the WAL. Databases that have no backup
// and get none by themselves, or later, such as branches, do not count, nor do those in the trash and those that are yet
// to be brought back from the copy.
func (s *Service) Unrecoverable(has func(database, backup string) bool) (map[string]time.Time, error) {
	type protected struct {
		db     model.Database
		newest *model.Backup
	}
	var all []protected
	err := s.core.Meta.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(db model.Database) error {
			if db.Trash != nil || s.isRecovered(db.ID) || s.isAway(db.ID) {
				return nil
			}
			newest, err := databases.NewestCompleted(tx, db.ID)
			if newest != nil || databases.IsUnprotected(db, nil) && s.databases.BackupInterval(db) > 0 {
				all = append(all, protected{db, newest})
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	lacking := map[string]time.Time{}
	for _, p := range all {
		if since, lacks, err := s.isUnrecoverable(p.db, p.newest, has); err != nil {
			return nil, err
		} else if lacks {
			lacking[p.db.ID] = since
		}
	}
	return lacking, nil
}

func (s *Service) isUnrecoverable(db model.Database, newest *model.Backup, has func(database, backup string) bool) (since time.Time, lacks bool, err error) {
	if newest == nil {
		return db.CreatedAt, true, nil
	}
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return since, false, err
	}
	reach := func(b model.Backup) bool { return has(db.ID, b.ID) && reaches(archive, b, db.Generation) }
	if reach(*newest) {
		return since, false, nil
	}
	backups, err := s.restorableBackups(db.ID)
	if err != nil || slices.ContainsFunc(backups, reach) {
		return since, false, err
	}
	for _, b := range backups { // the newest has the WAL up to the gap
		if has(db.ID, b.ID) && leadsTo(archive, b, db.Generation) {
			if gap := gapAfter(archive, b, db.Generation); gap != nil {
				return gap.At, true, nil
			}
		}
	}
	if len(db.Served) > 0 {
		return db.Served[len(db.Served)-1].Since, true, nil
	}
	return db.CreatedAt, true, nil
}

// refuseAway refuses to open the backups of a database while files of theirs are in the store alone: to open them removes what
// looks interrupted or needless, which is what is being fetched.
func (s *Service) refuseAway(database string) error {
	switch {
	case !s.isAway(database):
		return nil
	case s.offsite.Left(database):
		return model.Errorf(model.CodeConflict, "the backups of the database are in the copy off-site only: the recovery left them there, because --only names others; "+leftRemedy)
	}
	return model.Errorf(model.CodeConflict, "the backups of the database are being fetched from the copy off-site; try again when they are here")
}

// leftRemedy says how to bring back a database that a recovery left in the copy.
const leftRemedy = "stop the appliance and repeat `holdfast recover` with its name, or without --only"

// FetchBackups brings the files of a database's backups here from the off-site copy, and
// reconciles them with their records. Of a database that is removed for good meanwhile it leaves nothing,
// and returns that there is none.
func (s *Service) FetchBackups(ctx context.Context, database string, progress func(done, total int64)) error {
	_, err := s.unpurged(database)
	if err == nil {
		err = s.offsite.Fetch(ctx, database, progress)
	}
	db, gone := s.unpurged(database)
	if model.CodeOf(gone) == model.CodeNotFound {
		return cmp.Or(s.RemoveBackups(database), gone) // files may have come after the removal
	}
	if err = cmp.Or(err, gone); err != nil {
		return err
	}
	s.archives.changed(database)
	if err := s.reconcileRepository(db); err != nil {
		return err
	}
	return s.RecoverBackups(database)
}
