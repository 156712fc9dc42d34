package recovery

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
)

const (
	// scheduleInterval is how often the schedule checks which backups are due.
	scheduleInterval = 15 * time.Second
	// firstBackupDelay is the age of a database at its first backup.
	firstBackupDelay = time.Minute
	// backupRetry is the time between a failed backup and the next attempt.
	backupRetry = 15 * time.Minute
)

// backupSlots is how many scheduled backups are made at once.
const backupSlots = 4

// ScheduleBackups makes backups when they are due, until ctx ends. It backs up one database of an organization at a
// time, and no organization waits for another: a backup may take long or hang.
func (s *Service) ScheduleBackups(ctx context.Context) {
	if s.core.Config.BackupInterval <= 0 {
		return
	}
	ticker := time.NewTicker(scheduleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if s.core.ReadOnly() == nil {
				s.core.Background(s.BackUpDue)
			}
		case <-ctx.Done():
			return
		}
	}
}

// BackUpDue makes the backups that are due and waits for them. It skips
// organizations whose backups an earlier call is still making.
func (s *Service) BackUpDue(ctx context.Context) {
	databases, err := s.databases.KeptDatabases()
	if err != nil {
		s.core.Log.Error("list databases to back up", "error", err)
		return
	}
	by := map[string][]model.Database{}
	for _, db := range databases {
		by[db.Organization] = append(by[db.Organization], db)
	}
	var organizations sync.WaitGroup
	for organization, databases := range by {
		release, err := s.core.Claims.Take(organization+"/scheduled", "scheduled backups")
		if err != nil {
			continue
		}
		organizations.Go(func() {
			defer release()
			s.backUpInOrder(ctx, databases)
		})
	}
	organizations.Wait()
}

// backUpInOrder makes the due backups of the given databases, one after the other.
func (s *Service) backUpInOrder(ctx context.Context, databases []model.Database) {
	for _, db := range databases {
		next, err := s.nextBackup(db)
		if err != nil {
			s.core.Log.Error("compute when a backup is due", "database", db.ID, "error", err)
		}
		if err != nil || ctx.Err() != nil || db.Sandbox || s.core.Clock().Before(next) {
			continue
		}
		if status, _ := s.databases.LiveStatus(db); status != model.DatabaseAvailable {
			continue // the next check is soon enough
		}
		if unchanged, err := s.sleepsSinceBackup(db); err == nil && unchanged {
			continue
		}
		s.backUpScheduled(ctx, db)
	}
}

// backUpScheduled waits for a slot and makes a scheduled backup.
func (s *Service) backUpScheduled(ctx context.Context, db model.Database) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
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

// sleepsSinceBackup is RestsSince of the newest backup of a database.
func (s *Service) sleepsSinceBackup(db model.Database) (bool, error) {
	if !s.databases.Rests(db.ID) {
		return false, nil
	}
	now, err := s.databases.Record(db.ID)
	if err != nil {
		return false, err
	}
	backups, err := s.restorableBackups(db.ID)
	return len(backups) > 0 && s.databases.RestsSince(now, backups[0]), err
}

// backUpSoon runs backUpNow in the background. It holds a claim until the first attempt, so that a caller that waits
// for the end of all work on the database sees no gap before the backup.
func (s *Service) backUpSoon(database string) {
	release, err := s.core.Claims.Take(database+"/owed", "the backup after a restore or a gap")
	if err != nil {
		return // another one is about to begin
	}
	s.core.Background(func(context.Context) { s.backUpNow(database, release) })
}

// backUpNow starts a backup of a database as soon as nothing blocks it. It calls
// tried after each attempt.
func (s *Service) backUpNow(database string, tried func()) {
	defer tried()
	s.databases.AwaitStart(s.core.Lifetime, database) // a start may owe the backup
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

// nextBackup returns when the next scheduled backup of a database is due; a time
// in the past means now. Each database has its own time within the interval,
// derived from its id, so that backups are spread and keep their time across
// restarts. The time after the last backup counts, manual or not, however long ago
// it was. In a database with a maintenance window, a backup waits for the first one
// after that time; one that could not be made there does not wait for the next.
func (s *Service) nextBackup(db model.Database) (time.Time, error) {
	all, err := s.backupsOf(db.ID)
	if err != nil {
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
	return dueAfter(db, last, s.databases.BackupInterval(db), now), nil
}

// dueAfter is scheduledAfter with the database's maintenance window, for which the first backup and another attempt do
// not wait.
func dueAfter(db model.Database, last *model.Backup, interval time.Duration, now time.Time) time.Time {
	next := scheduledAfter(db, last, interval, now)
	if last == nil || last.Status == model.BackupFailed {
		return next
	}
	return db.MaintenanceWindow.Next(next)
}

// isAhead reports whether a backup's start is in the future, because the clock has been set back since. Such a backup
// does not determine when the next one is due.
func isAhead(b model.Backup, now time.Time) bool { return b.StartedAt.After(now.Add(time.Minute)) }

// scheduledAfter returns when the backup after last is due; last is nil for none.
func scheduledAfter(db model.Database, last *model.Backup, interval time.Duration, now time.Time) time.Time {
	if last == nil && db.CreatedAt.After(now) { // the clock has been set back since
		return now
	}
	if last == nil && db.Parent != "" { // a first backup reads all that the branch shares with its parent
		return db.CreatedAt.Add(interval)
	}
	if last == nil {
		return db.CreatedAt.Add(firstBackupDelay)
	}
	next := lastScheduledTime(db.ID, interval, last.StartedAt).Add(interval)
	if retry := last.StartedAt.Add(backupRetry); last.Status == model.BackupFailed && retry.Before(next) {
		return retry
	}
	return next
}

// lastScheduledTime returns the database's latest scheduled time that is not after at.
func lastScheduledTime(id string, interval time.Duration, at time.Time) time.Time {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(id))
	offset := time.Duration(hash.Sum64() % uint64(interval))
	since := at.Sub(time.Unix(0, 0)) - offset
	return time.Unix(0, 0).Add(offset + since - since%interval).UTC()
}

// checkSpaceForBackup refuses a backup unless free disk space is at least half the size of the database: most databases
// compress to less.
func (s *Service) checkSpaceForBackup(database string) error {
	stats, _ := s.databases.Statistics.Get(database)
	need := stats.SizeBytes/2 + core.MinFreeSpace
	return s.core.Space.Reserve("", need, 0, func(free int64) error {
		return core.NoSpace(nil,
			"the disk has %d MB free that no other operation needs, and a backup of this database may need %d MB: the operator must free disk space", free>>20, need>>20)
	})
}
