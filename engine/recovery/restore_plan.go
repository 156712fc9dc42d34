package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/backup"
	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// RestorePlan is what a database is brought back from, and to which moment.
type RestorePlan struct {
	Backup model.Backup
	Point  RestorePoint // asked for; the zero value is the end of the backup
	backup.Plan

	// Estimated is about how long the restore takes, nil where too little was
	// measured on this machine to say.
	Estimated *time.Duration
	unpacked  time.Duration // how long its files took
}

// describe notes what an operation that follows the plan brings back.
func (p RestorePlan) describe(op *model.DatabaseOperation) {
	op.Backup, op.TargetLSN = p.Backup.ID, p.Point.LSN
	if !p.Point.Time.IsZero() {
		op.TargetTime = &p.Point.Time
	}
}

// NeededBytes is the room the restored data takes beside the present.
func (p RestorePlan) NeededBytes() int64 { return p.Backup.SizeBytes + 16*core.LeastRoom }

// PlanBackup plans to go back to the end of a backup, for a person.
func (s *Service) PlanBackup(ctx context.Context, b model.Backup) (RestorePlan, error) {
	p, err := s.PlanEnd(ctx, b)
	if errors.Is(err, wal.ErrGap) {
		return p, notWhole(err)
	}
	return p, err
}

// PlanEnd plans to go back to the end of a backup.
func (s *Service) PlanEnd(ctx context.Context, b model.Backup) (RestorePlan, error) {
	archive, err := s.WalArchive(b.Database)
	if err != nil {
		return RestorePlan{}, err
	}
	stop, err := xlog.ParseLSN(b.StopLSN)
	if err != nil {
		return RestorePlan{}, err
	}
	p, err := planFrom(ctx, archive, b, wal.Target{Generation: b.Generation, Timeline: uint32(b.Timeline), LSN: stop})
	p.At = time.Time{}
	return p, err
}

// planFrom plans to roll a backup forward to a target.
func planFrom(ctx context.Context, archive *wal.Archive, b model.Backup, target wal.Target) (RestorePlan, error) {
	stored := repository.Backup{StartLSN: b.StartLSN, StopLSN: b.StopLSN, CompletedAt: *b.CompletedAt}
	plan, err := backup.NewPlan(ctx, archive, stored, target)
	return RestorePlan{Backup: b, Plan: plan}, err
}

// RestorePoint is a moment of a database: exactly one of the two.
type RestorePoint struct {
	Time time.Time
	LSN  string
}

// validate checks the form of a point.
func (at RestorePoint) validate() error {
	if at.LSN == "" {
		return nil
	}
	_, err := at.position()
	return err
}

// position is the LSN of a point that is one.
func (at RestorePoint) position() (xlog.LSN, error) {
	lsn, err := xlog.ParseLSN(at.LSN)
	if err != nil || lsn == 0 {
		return 0, model.Invalid("target_lsn", "%q is not an LSN, such as 0/3000148", at.LSN)
	}
	return lsn, nil
}

// RestorePlan says how the database would be brought to a point, once it has
// read all WAL that takes, and changes nothing.
func (s *Service) RestorePlan(ctx context.Context, call *model.Call, database string, at RestorePoint) (RestorePlan, error) {
	call.Note("dry_run", "true")
	if err := at.validate(); err != nil {
		return RestorePlan{}, err
	}
	if err := s.core.OnlyOnce(call); err != nil {
		return RestorePlan{}, err
	}
	db, err := s.databases.Database(call, database)
	if err != nil {
		return RestorePlan{}, err
	}
	p, err := s.planPoint(ctx, db, at)
	if err != nil {
		return RestorePlan{}, err
	}
	if err := s.checkPlan(ctx, p, nil); err != nil {
		return p, err
	}
	p.Estimated, err = s.estimate(p)
	return p, err
}

// planPoint finds the newest backup from which a point can be reached. A time
// is looked for in the generation that served the database then: after a
// restore, times before it mean what was there before it.
func (s *Service) planPoint(ctx context.Context, db model.Database, at RestorePoint) (RestorePlan, error) {
	if db.Sandbox {
		return RestorePlan{}, noBackupsOf(db)
	}
	if at.LSN == "" {
		s.AwaitArchive(ctx, db.ID, at.Time)
	}
	target, generations, err := s.target(db, at)
	if err != nil {
		return RestorePlan{}, err
	}
	archive, err := s.WalArchive(db.ID)
	if err != nil {
		return RestorePlan{}, err
	}
	backups, err := s.restorableBackups(db.ID)
	if err != nil {
		return RestorePlan{}, err
	}
	if len(backups) == 0 || at.LSN == "" && at.Time.IsZero() { // the archive takes the zero time for none
		return RestorePlan{}, s.outside(ctx, db, at, nil)
	}
	safe, err := s.restorableTo(ctx, backups[0])
	if err != nil {
		return RestorePlan{}, err
	}
	// Those that could not be restored when it was tried are the last resort.
	slices.SortStableFunc(backups, func(a, b model.Backup) int { return cmp.Compare(unfit(a), unfit(b)) })
	var reason error
	for _, generation := range generations {
		for _, b := range backups {
			if !leads(archive, b, generation) {
				continue
			}
			target.Generation, target.Idle = generation, s.idleUntil(db, generation, safe)
			plan, err := planFrom(ctx, archive, b, target)
			if err == nil {
				plan.Point = at
				return plan, nil
			}
			if !errors.Is(err, backup.ErrTooYoung) {
				reason = err
			}
		}
	}
	return RestorePlan{}, s.outside(ctx, db, at, reason)
}

// leads reports whether the WAL leads from a backup to a generation.
func leads(archive *wal.Archive, b model.Backup, generation int) bool {
	stop, err := xlog.ParseLSN(b.StopLSN)
	return err == nil && archive.Leads(wal.Position{Generation: b.Generation, Timeline: uint32(b.Timeline), LSN: stop}, generation)
}

// archiveWait is how long a restore waits for the archive. A server that is
// quiet takes a second or two to say that nothing more was committed.
const archiveWait = 5 * time.Second

// AwaitArchive waits, where WAL comes in, until all that was committed by a
// moment that is just over is in the archive. For what is to come it does not
// wait, but for the end of a backup that is just complete, which is recorded as
// up to a recordedStep later than it was.
func (s *Service) AwaitArchive(ctx context.Context, database string, at time.Time) {
	if at.After(s.core.Clock().Add(recordedStep)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, archiveWait)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		status, _ := s.WALStatus(database)
		if status.State != wal.StateStreaming || !status.RestorableTo.Before(at) {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// unfit is 1 for a backup whose proof has failed, else 0.
func unfit(b model.Backup) int {
	if b.Verification.Status == model.VerificationFailed {
		return 1
	}
	return 0
}

// target reads a point; the generations are those it is looked for in.
func (s *Service) target(db model.Database, at RestorePoint) (t wal.Target, generations []int, err error) {
	if at.LSN != "" {
		if t.LSN, err = at.position(); err != nil {
			return t, nil, err
		}
		generations = append(generations, db.Generation)
		for _, it := range slices.Backward(db.Served) {
			if !slices.Contains(generations, it.Generation) {
				generations = append(generations, it.Generation)
			}
		}
		return t, generations, nil
	}
	t.Time = at.Time
	generation := firstGeneration
	for _, it := range db.Served {
		if !it.Since.After(at.Time) {
			generation = it.Generation
		}
	}
	return t, []int{generation}, nil
}

// firstGeneration is what a database is made with.
const firstGeneration = 1

// idleUntil is up to when it is known that nothing more was committed in a
// generation than is in the archive: for the one that serves, until safe. One
// that was replaced in order commits nothing any more.
func (s *Service) idleUntil(db model.Database, generation int, safe time.Time) time.Time {
	if generation == db.Generation {
		return safe
	}
	last := firstGeneration
	for _, it := range db.Served {
		if last == generation && it.Undrained {
			return time.Time{}
		}
		last = it.Generation
	}
	return s.core.Clock()
}

// restorableBackups returns the completed backups of a database, newest first.
func (s *Service) restorableBackups(database string) (backups []model.Backup, err error) {
	err = s.core.Meta.View(func(tx *meta.Tx) error {
		all, err := core.AllUnder(tx.Backups(), database)
		for _, b := range all {
			if b.Status == model.BackupCompleted && !b.DeletionPending {
				backups = append(backups, b)
			}
		}
		return err
	})
	return backups, err
}

// outside says, of a point that cannot be reached, what can be.
func (s *Service) outside(ctx context.Context, db model.Database, at RestorePoint, reason error) error {
	field, wanted := "target_time", at.Time.UTC().Format(time.RFC3339Nano)
	if at.LSN != "" {
		field, wanted = "target_lsn", at.LSN
	}
	if reason != nil && errors.Is(reason, wal.ErrGap) {
		return notWhole(reason)
	}
	if _, ok := errors.AsType[*wal.OutsideError](reason); reason != nil && !ok {
		return fmt.Errorf("plan a restore: %w", reason)
	}
	window, err := s.window(ctx, db)
	if err != nil {
		return err
	}
	if window.Earliest == nil {
		return model.Invalid(field, "nothing can be restored yet: the database has no completed backup")
	}
	if at.LSN != "" {
		first, last, err := s.positions(ctx, db)
		if err != nil {
			return err
		}
		if first == 0 {
			return model.Invalid(field, "%s cannot be restored: no backup of the present data is left; make one, or choose a moment", wanted)
		}
		return model.Invalid(field, "%s lies outside of what can be restored, which is from %v to %v", wanted, first, last)
	}
	if reason == nil && !at.Time.Before(*window.Earliest) && !at.Time.After(*window.Latest) {
		return model.Invalid(field, "%s cannot be restored: of the data that the database had then, "+
			"no backup from before it is left; choose a later moment, or restore a backup", wanted)
	}
	return model.Invalid(field, "%s lies outside of what can be restored, which is from %s to %s",
		wanted, window.Earliest.UTC().Format(time.RFC3339Nano), window.Latest.UTC().Format(time.RFC3339Nano))
}

// positions are the first and the last that can be restored in the history
// that the database has now; 0 when no backup leads into it.
func (s *Service) positions(ctx context.Context, db model.Database) (first, last xlog.LSN, err error) {
	archive, err := s.WalArchive(db.ID)
	if err != nil {
		return 0, 0, err
	}
	backups, err := s.restorableBackups(db.ID)
	if err != nil {
		return 0, 0, err
	}
	for _, b := range backups {
		if !leads(archive, b, db.Generation) {
			continue
		}
		if first, err = xlog.ParseLSN(b.StopLSN); err != nil {
			return 0, 0, err
		}
		if last == 0 {
			last = first
			_, err := planFrom(ctx, archive, b, wal.Target{Generation: db.Generation, LSN: ^xlog.LSN(0)})
			if past, ok := errors.AsType[*wal.OutsideError](err); ok {
				last = past.LatestLSN
			}
		}
	}
	return first, last, nil
}
