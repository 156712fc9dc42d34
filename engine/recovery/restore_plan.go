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

// RestorePlan says from which backup and WAL a database is restored, and to which point.
type RestorePlan struct {
	Backup model.Backup
	Point  RestorePoint // the requested point; the zero value is the end of the backup
	backup.Plan

	// Estimated is about how long the restore takes, nil while this machine has too
	// few measurements.
	Estimated *time.Duration
	unpacked  time.Duration // how long unpacking took

	files *backupFiles // nil for the appliance's own
}

// backupFiles is where a plan reads the backup and the WAL from.
type backupFiles struct {
	repository *repository.Repository
	archive    *wal.Archive
}

// archiveOf returns the WAL that a plan replays.
func (s *Service) archiveOf(p RestorePlan) (*wal.Archive, error) {
	if p.files != nil {
		return p.files.archive, nil
	}
	return s.WALArchive(p.Backup.Database)
}

// repositoryOf returns the repository of a plan's backup.
func (s *Service) repositoryOf(p RestorePlan) (*repository.Repository, error) {
	if p.files != nil {
		return p.files.repository, nil
	}
	return s.Repository(p.Backup.Database)
}

// describe records the plan's backup and point in the operation.
func (p RestorePlan) describe(op *model.DatabaseOperation) {
	op.Backup, op.TargetLSN = p.Backup.ID, p.Point.LSN
	if !p.Point.Time.IsZero() {
		op.TargetTime = &p.Point.Time
	}
}

// NeededBytes returns how much disk space the restored data takes in addition to the current data.
func (p RestorePlan) NeededBytes() int64 { return p.Backup.SizeBytes + core.SpaceMargin }

// PlanBackup is PlanEnd, but its error gives the remedy for a gap in the WAL.
func (s *Service) PlanBackup(ctx context.Context, b model.Backup) (RestorePlan, error) {
	p, err := s.PlanEnd(ctx, b)
	if errors.Is(err, wal.ErrGap) {
		return p, explainGap(err)
	}
	return p, err
}

// PlanEnd plans a restore to the end of a backup.
func (s *Service) PlanEnd(ctx context.Context, b model.Backup) (RestorePlan, error) {
	archive, err := s.WALArchive(b.Database)
	if err != nil {
		return RestorePlan{}, err
	}
	return planEnd(ctx, archive, b)
}

// planEnd is PlanEnd with the WAL of an archive.
func planEnd(ctx context.Context, archive *wal.Archive, b model.Backup) (RestorePlan, error) {
	stop, err := xlog.ParseLSN(b.StopLSN)
	if err != nil {
		return RestorePlan{}, err
	}
	p, err := planFrom(ctx, archive, b, wal.Target{Generation: b.Generation, Timeline: uint32(b.Timeline), LSN: stop})
	p.At = time.Time{}
	return p, err
}

// planFrom plans to restore a backup and replay WAL up to a target.
func planFrom(ctx context.Context, archive *wal.Archive, b model.Backup, target wal.Target) (RestorePlan, error) {
	stored := repository.Backup{StartLSN: b.StartLSN, StopLSN: b.StopLSN, CompletedAt: *b.CompletedAt}
	plan, err := backup.NewPlan(ctx, archive, stored, target)
	return RestorePlan{Backup: b, Plan: plan}, err
}

// RestorePoint is a point in a database's history: exactly one of the fields is
// set.
type RestorePoint struct {
	Time time.Time
	LSN  string

	field string // where the request names the time; "" means target_time
}

// validate checks the form of a point.
func (at RestorePoint) validate() error {
	if at.LSN == "" {
		return nil
	}
	_, err := at.position()
	return err
}

// position parses the point's LSN.
func (at RestorePoint) position() (xlog.LSN, error) {
	lsn, err := xlog.ParseLSN(at.LSN)
	if err != nil || lsn == 0 {
		return 0, model.Invalid("target_lsn", "%q is not an LSN, such as 0/3000148", at.LSN)
	}
	return lsn, nil
}

// RestorePlan returns how RecoveryRestore would restore the database to a point. It reads all WAL that this needs and
// changes nothing.
func (s *Service) RestorePlan(ctx context.Context, call *model.Call, database string, at RestorePoint, into *string) (RestorePlan, error) {
	call.Note("dry_run", "true")
	if err := cmp.Or(validateInto(into), at.validate()); err != nil {
		return RestorePlan{}, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
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
	if err := s.checkMajor(ctx, p); err != nil {
		return p, err
	}
	if err := s.checkPlan(ctx, p, nil); err != nil {
		return p, err
	}
	if p.Estimated, err = s.estimate(p); err != nil || into == nil {
		return p, err
	}
	return p, s.core.Meta.View(func(tx *meta.Tx) error {
		if _, err := tx.Databases().Find(meta.ByName, meta.Key(db.Project, *into)); !errors.Is(err, meta.ErrNotFound) {
			return cmp.Or(err, core.NameTaken(meta.ErrExists, model.ResourceDatabase, *into))
		}
		return nil
	})
}

// planPoint finds the newest backup from which a point can be reached. It looks for a time in the generation that was
// current then: times before a restore refer to the data before that restore, see [pointPlanner.planTime]. An LSN is that of
// the present data, if these have it, see [pointPlanner.planLSN].
func (s *Service) planPoint(ctx context.Context, db model.Database, at RestorePoint) (RestorePlan, error) {
	if db.Sandbox {
		return RestorePlan{}, noBackupsOf(db)
	}
	var written xlog.LSN
	if at.LSN == "" {
		s.AwaitArchive(ctx, db.ID, at.Time)
	} else {
		lsn, err := at.position()
		if err != nil {
			return RestorePlan{}, err
		}
		written = s.awaitPosition(ctx, db, lsn)
	}
	backups, err := s.restorableBackups(db.ID)
	if err != nil {
		return RestorePlan{}, err
	}
	if len(backups) == 0 || at.LSN == "" && at.Time.IsZero() { // the archive treats the zero time as none
		return RestorePlan{}, s.explainUnreachable(ctx, db, at, nil)
	}
	planner, err := s.newPointPlanner(ctx, db, backups)
	if err != nil {
		return RestorePlan{}, err
	}
	planner.written = written
	plan, err := planner.plan(ctx, at)
	if err != nil {
		return RestorePlan{}, s.explainUnreachable(ctx, db, at, err)
	}
	plan.Point = at
	return plan, nil
}

// leadsTo reports whether the WAL leads from a backup to a generation.
func leadsTo(archive *wal.Archive, b model.Backup, generation int) bool {
	stop, err := xlog.ParseLSN(b.StopLSN)
	return err == nil && archive.Leads(wal.Position{Generation: b.Generation, Timeline: uint32(b.Timeline), LSN: stop}, generation)
}

// reaches reports whether a backup can be rolled forward to the end of a generation: the WAL leads there without a gap.
func reaches(archive *wal.Archive, b model.Backup, generation int) bool {
	return leadsTo(archive, b, generation) && gapAfter(archive, b, generation) == nil
}

// gapAfter returns the first gap in the WAL between the start of a backup and the end of a generation, nil if there is none.
func gapAfter(archive *wal.Archive, b model.Backup, generation int) *wal.Gap {
	start, err := xlog.ParseLSN(b.StartLSN)
	if err != nil {
		return nil
	}
	return archive.GapAfter(wal.Position{Generation: b.Generation, Timeline: uint32(b.Timeline), LSN: start}, generation)
}

// archiveWait is how long a restore waits for the archive. An idle server takes a
// second or two to report that nothing more was committed.
const archiveWait = 5 * time.Second

// AwaitArchive waits, if WAL is being received, until the archive has everything committed up to a time that has just
// passed. It does not wait for future times, except for the end of a backup, which is recorded up to endPrecision late.
func (s *Service) AwaitArchive(ctx context.Context, database string, at time.Time) {
	if at.After(s.core.Clock().Add(endPrecision)) {
		return
	}
	s.awaitStatus(ctx, database, func(status wal.Status) bool { return !status.RestorableTo.Before(at) })
}

// awaitStatus waits for a status of the WAL receiver, if WAL is being received, for as long as a restore waits.
func (s *Service) awaitStatus(ctx context.Context, database string, reached func(wal.Status) bool) {
	ctx, cancel := context.WithTimeout(ctx, archiveWait)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		status, _ := s.WALStatus(database)
		if status.State != wal.StateStreaming || reached(status) {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// verificationRank is 1 for a backup whose verification has failed, else 0.
func verificationRank(b model.Backup) int {
	if b.Verification.Status == model.VerificationFailed {
		return 1
	}
	return 0
}

// restorableBackups returns the completed backups of a database, newest first.
func (s *Service) restorableBackups(database string) ([]model.Backup, error) {
	all, err := s.backupsOf(database)
	return slices.DeleteFunc(all, func(b model.Backup) bool { return b.Status != model.BackupCompleted || b.DeletionPending }), err
}

// explainUnreachable returns the error for a point that cannot be reached, which says what can be reached. The reason is
// nil or [backup.ErrAfterTarget] if no backup from before the point is left.
func (s *Service) explainUnreachable(ctx context.Context, db model.Database, at RestorePoint, reason error) error {
	if errors.Is(reason, backup.ErrAfterTarget) {
		reason = nil
	}
	field, wanted := cmp.Or(at.field, "target_time"), at.Time.UTC().Format(time.RFC3339Nano)
	if at.LSN != "" {
		field, wanted = "target_lsn", at.LSN
	}
	if reason != nil && errors.Is(reason, wal.ErrGap) {
		return explainGap(reason)
	}
	outside, ok := errors.AsType[*wal.OutsideError](reason)
	if reason != nil && !ok {
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
	within := !at.Time.Before(*window.Earliest) && !at.Time.After(*window.Latest)
	switch {
	case within && reason == nil:
		return model.Invalid(field, "%s cannot be restored: of the data that the database had then, "+
			"no backup from before it is left; choose a later moment, or restore a backup", wanted)
	case within && !outside.Latest.IsZero():
		return model.Invalid(field, "%s cannot be restored: of the data that the database had then, the last commit that is known is of %s; choose that moment, or one %s",
			wanted, outside.Latest.UTC().Format(time.RFC3339Nano), sinceNext(db, at.Time))
	}
	return model.Invalid(field, "%s lies outside of what can be restored, which is from %s to %s",
		wanted, window.Earliest.UTC().Format(time.RFC3339Nano), window.Latest.UTC().Format(time.RFC3339Nano))
}

// sinceNext names the moments from which on other data served than those that served at a time.
func sinceNext(db model.Database, at time.Time) string {
	for _, it := range db.Served {
		if it.Since.After(at) {
			return "from " + it.Since.UTC().Format(time.RFC3339Nano) + " on"
		}
	}
	return "before it"
}

// positions returns the first and the last LSN that can be restored in the database's current history; 0 if no backup
// leads to it.
func (s *Service) positions(ctx context.Context, db model.Database) (first, last xlog.LSN, err error) {
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return 0, 0, err
	}
	backups, err := s.restorableBackups(db.ID)
	if err != nil {
		return 0, 0, err
	}
	for _, b := range backups {
		if !leadsTo(archive, b, db.Generation) {
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
