package recovery

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// scheduleInterval is how often it is looked which backups are due.
	scheduleInterval = 15 * time.Second
	// FirstBackupDelay is how old a database is at its first backup.
	FirstBackupDelay = time.Minute
	// BackupRetry is how long after an attempt that failed the next is made.
	BackupRetry = 15 * time.Minute
)

// backupTurns is how many organizations' scheduled backups are made at once.
const backupTurns = 4

// ScheduleBackups makes backups when they are due until ctx ends. Of an
// organization's databases one has its turn at a time, and no organization waits
// for another's: a backup may take long, or come to nothing.
func (s *Service) ScheduleBackups(ctx context.Context) {
	if s.core.Config.BackupInterval <= 0 {
		return
	}
	ticker := time.NewTicker(scheduleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.core.Background(s.BackUpWhatIsDue)
		case <-ctx.Done():
			return
		}
	}
}

// BackUpWhatIsDue makes what backups are due, but for those of organizations whose
// turn since an earlier look goes on.
func (s *Service) BackUpWhatIsDue(ctx context.Context) {
	databases, err := s.databases.KeptDatabases()
	if err != nil {
		s.core.Log.Error("list databases to back up", "error", err)
		return
	}
	by := map[string][]model.Database{}
	for _, db := range databases {
		by[db.Organization] = append(by[db.Organization], db)
	}
	var turns sync.WaitGroup
	for organization, databases := range by {
		release, err := s.core.Claims.Take(organization+"/scheduled", "a turn of scheduled backups")
		if err != nil {
			continue
		}
		turns.Go(func() {
			defer release()
			s.backUpInTurn(ctx, databases)
		})
	}
	turns.Wait()
}

// backUpInTurn makes the backups of databases that are due, one after the other.
func (s *Service) backUpInTurn(ctx context.Context, databases []model.Database) {
	for _, db := range databases {
		next, err := s.nextBackup(db)
		if err != nil {
			s.core.Log.Error("see when a backup is due", "database", db.ID, "error", err)
		}
		if err != nil || ctx.Err() != nil || db.Sandbox || s.core.Clock().Before(next) {
			continue
		}
		if status, _ := s.databases.LiveStatus(db); status != model.DatabaseAvailable {
			continue // the next look is soon enough
		}
		s.backUpScheduled(ctx, db)
	}
}

// backUpScheduled makes a scheduled backup, when fewer than backupTurns are under way.
func (s *Service) backUpScheduled(ctx context.Context, db model.Database) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return
	}
	call := s.core.System(model.ActionBackupCreate, db.Organization, databases.DatabaseResource(db))
	_, done, err := s.BeginBackup(call, db, model.BackupScheduled)
	if err != nil {
		s.core.Log.Warn("begin a scheduled backup", "database", db.ID, "error", err)
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// backUpSoon is backUpNow in the background. Until it was tried for the first
// time that is claimed, so that whoever waits for an end of all that is done to
// the database does not find one in between.
func (s *Service) backUpSoon(database string) {
	release, err := s.core.Claims.Take(database+"/owed", "a backup that is owed")
	if err != nil {
		return // another is about to begin
	}
	s.core.Background(func(context.Context) { s.backUpNow(database, release) })
}

// backUpNow begins a backup of a database as soon as nothing is in its way.
// Tried is called after each attempt.
func (s *Service) backUpNow(database string, tried func()) {
	defer tried()
	for {
		db, err := s.databases.Record(database)
		if err != nil || db.Trash != nil || s.core.Lifetime.Err() != nil {
			return
		}
		call := s.core.System(model.ActionBackupCreate, db.Organization, databases.DatabaseResource(db))
		_, _, err = s.BeginBackup(call, db, model.BackupScheduled)
		tried()
		if err == nil {
			return
		}
		s.core.Log.Info("a backup waits", "database", database, "reason", err)
		select {
		case <-time.After(scheduleInterval):
		case <-s.core.Lifetime.Done():
		}
	}
}

// NextBackup returns when the next scheduled backup of a database is due; a
// time that has passed means now. Each database has its own moment in the
// interval, drawn from its id, so that they are spread and stay where they are
// whatever happens to the appliance; a backup made by hand since then will do.
func (s *Service) nextBackup(db model.Database) (time.Time, error) {
	var all []model.Backup
	if err := s.core.Meta.View(func(tx *meta.Tx) (err error) {
		all, err = core.AllUnder(tx.Backups(), db.ID)
		return err
	}); err != nil {
		return time.Time{}, err
	}
	now := s.core.Clock()
	var last *model.Backup
	for _, b := range all {
		if !isAhead(b, now) {
			last = &b
			break
		}
	}
	return NextBackup(db, last, s.core.Config.BackupInterval, now), nil
}

// isAhead reports whether a backup was begun by a clock that has been set back
// since. It does not say when another is due.
func isAhead(b model.Backup, now time.Time) bool { return b.StartedAt.After(now.Add(time.Minute)) }

func NextBackup(db model.Database, last *model.Backup, interval time.Duration, now time.Time) time.Time {
	if last == nil && db.CreatedAt.After(now) { // by a clock that has been set back since
		return now
	}
	if last == nil {
		return db.CreatedAt.Add(FirstBackupDelay)
	}
	moment := LastMoment(db.ID, interval, now)
	switch {
	case last.Status == model.BackupFailed:
		retry := last.StartedAt.Add(min(BackupRetry, interval))
		if next := moment.Add(interval); next.Before(retry) {
			return next
		}
		return retry
	case last.StartedAt.Before(moment):
		return moment
	default:
		return moment.Add(interval)
	}
}

// LastMoment returns the database's newest moment that is not after now.
func LastMoment(id string, interval time.Duration, now time.Time) time.Time {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(id))
	offset := time.Duration(hash.Sum64() % uint64(interval))
	since := now.Sub(time.Unix(0, 0)) - offset
	return time.Unix(0, 0).Add(offset + since - since%interval).UTC()
}

// roomForBackup refuses a backup for which there is no room: half of what the
// database takes, which is more than compression leaves of most.
func (s *Service) roomForBackup(database string) error {
	stats, _ := s.databases.Statistics.Get(database)
	host, err := core.MeasureHost(s.core.Config.DataDir)
	if need := stats.SizeBytes/2 + core.LeastRoom; err == nil && host.DiskFree < need {
		return model.Errorf(model.CodeForbidden,
			"the disk has %d MB free, and a backup of this database may need %d MB: the operator must make room", host.DiskFree>>20, need>>20)
	}
	return nil
}
