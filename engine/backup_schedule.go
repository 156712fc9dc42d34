package engine

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// scheduleInterval is how often it is looked which backups are due.
	scheduleInterval = 15 * time.Second
	// firstBackupDelay is how old a database is at its first backup.
	firstBackupDelay = time.Minute
	// backupRetry is how long after an attempt that failed the next is made.
	backupRetry = 15 * time.Minute
)

// scheduledBackup is the key under which a backup that the appliance makes by
// itself can be cancelled.
func scheduledBackup(database string) string { return database + "/backup/scheduled" }

// backupTurns is how many organizations' scheduled backups are made at once.
const backupTurns = 4

// scheduleBackups makes backups when they are due until ctx ends. Of an
// organization's databases one has its turn at a time, and no organization waits
// for another's: a backup may take long, or come to nothing.
func (e *Engine) scheduleBackups(ctx context.Context) {
	if e.cfg.BackupInterval <= 0 {
		return
	}
	ticker := time.NewTicker(scheduleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			e.background(e.backUpWhatIsDue)
		case <-ctx.Done():
			return
		}
	}
}

// backUpWhatIsDue makes what backups are due, but for those of organizations whose
// turn since an earlier look goes on.
func (e *Engine) backUpWhatIsDue(ctx context.Context) {
	databases, err := e.keptDatabases()
	if err != nil {
		e.log.Error("list databases to back up", "error", err)
		return
	}
	by := map[string][]model.Database{}
	for _, db := range databases {
		by[db.Organization] = append(by[db.Organization], db)
	}
	var turns sync.WaitGroup
	for organization, databases := range by {
		release, err := e.claims.take(organization+"/scheduled", "a turn of scheduled backups")
		if err != nil {
			continue
		}
		turns.Go(func() {
			defer release()
			e.backUpInTurn(ctx, databases)
		})
	}
	turns.Wait()
}

// backUpInTurn makes the backups of databases that are due, one after the other.
func (e *Engine) backUpInTurn(ctx context.Context, databases []model.Database) {
	for _, db := range databases {
		next, err := e.nextBackup(db)
		if err != nil {
			e.log.Error("see when a backup is due", "database", db.ID, "error", err)
		}
		if err != nil || ctx.Err() != nil || db.Sandbox || e.clock().Before(next) {
			continue
		}
		if status, _ := e.liveStatus(db); status != model.DatabaseAvailable {
			continue // the next look is soon enough
		}
		e.backUpScheduled(ctx, db)
	}
}

// backUpScheduled makes a scheduled backup, when fewer than backupTurns are under way.
func (e *Engine) backUpScheduled(ctx context.Context, db model.Database) {
	select {
	case e.turns <- struct{}{}:
		defer func() { <-e.turns }()
	case <-ctx.Done():
		return
	}
	call := e.system(model.ActionBackupCreate, db.Organization, databaseResource(db))
	_, done, err := e.beginBackup(call, db, model.BackupScheduled)
	if err != nil {
		e.log.Warn("begin a scheduled backup", "database", db.ID, "error", err)
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
func (e *Engine) backUpSoon(database string) {
	release, err := e.claims.take(database+"/owed", "a backup that is owed")
	if err != nil {
		return // another is about to begin
	}
	e.background(func(context.Context) { e.backUpNow(database, release) })
}

// backUpNow begins a backup of a database as soon as nothing is in its way.
// Tried is called after each attempt.
func (e *Engine) backUpNow(database string, tried func()) {
	defer tried()
	for {
		db, err := e.record(database)
		if err != nil || db.Trash != nil || e.ctx.Err() != nil {
			return
		}
		call := e.system(model.ActionBackupCreate, db.Organization, databaseResource(db))
		_, _, err = e.beginBackup(call, db, model.BackupScheduled)
		tried()
		if err == nil {
			return
		}
		e.log.Info("a backup waits", "database", database, "reason", err)
		select {
		case <-time.After(scheduleInterval):
		case <-e.ctx.Done():
		}
	}
}

// nextBackup returns when the next scheduled backup of a database is due; a
// time that has passed means now. Each database has its own moment in the
// interval, drawn from its id, so that they are spread and stay where they are
// whatever happens to the appliance; a backup made by hand since then will do.
func (e *Engine) nextBackup(db model.Database) (time.Time, error) {
	var all []model.Backup
	if err := e.meta.View(func(tx *meta.Tx) (err error) {
		all, err = allUnder(tx.Backups(), db.ID)
		return err
	}); err != nil {
		return time.Time{}, err
	}
	now := e.clock()
	var last *model.Backup
	for _, b := range all {
		if !isAhead(b, now) {
			last = &b
			break
		}
	}
	return nextBackup(db, last, e.cfg.BackupInterval, now), nil
}

// isAhead reports whether a backup was begun by a clock that has been set back
// since. It does not say when another is due.
func isAhead(b model.Backup, now time.Time) bool { return b.StartedAt.After(now.Add(time.Minute)) }

func nextBackup(db model.Database, last *model.Backup, interval time.Duration, now time.Time) time.Time {
	if last == nil && db.CreatedAt.After(now) { // by a clock that has been set back since
		return now
	}
	if last == nil {
		return db.CreatedAt.Add(firstBackupDelay)
	}
	moment := lastMoment(db.ID, interval, now)
	switch {
	case last.Status == model.BackupFailed:
		retry := last.StartedAt.Add(min(backupRetry, interval))
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

// lastMoment returns the database's newest moment that is not after now.
func lastMoment(id string, interval time.Duration, now time.Time) time.Time {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(id))
	offset := time.Duration(hash.Sum64() % uint64(interval))
	since := now.Sub(time.Unix(0, 0)) - offset
	return time.Unix(0, 0).Add(offset + since - since%interval).UTC()
}

// roomForBackup refuses a backup for which there is no room: half of what the
// database takes, which is more than compression leaves of most.
func (e *Engine) roomForBackup(database string) error {
	stats, _ := e.stats.get(database)
	host, err := measureHost(e.cfg.DataDir)
	if need := stats.SizeBytes/2 + leastRoom; err == nil && host.DiskFree < need {
		return model.Errorf(model.CodeForbidden,
			"the disk has %d MB free, and a backup of this database may need %d MB: the operator must make room", host.DiskFree>>20, need>>20)
	}
	return nil
}
