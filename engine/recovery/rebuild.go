package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"holdfast/backup"
	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Rebuild creates the data directory of a database that came here with only its backups. One that was moved is restored
// from the newest of them; of one that is recovered from an off-site copy, the files are fetched first, and it is
// restored to the last commit in the archive. It is a restore that replaces nothing. If it fails or the appliance
// crashes before the switch, the next start tries again.
func (s *Service) Rebuild(ctx context.Context, db model.Database) error {
	if s.offsite != nil && s.offsite.Left(db.ID) {
		s.failWithoutData(db, nil)
		return nil
	}
	op := s.databases.NewOperation(db, model.OperationRestore, "rebuilding")
	recovered := s.isRecovered(db.ID)
	if recovered {
		op.Phase = "fetching"
	}
	if err := s.core.Meta.Update(func(tx *meta.Tx) error { return databases.InsertOperation(tx, op, model.DatabaseRestoring) }); err != nil {
		return err
	}
	defer s.databases.Progress.Drop(op.ID)
	defer s.core.Space.Release(op.ID)
	last, err := s.rebuild(ctx, db, op, recovered)
	if ctx.Err() != nil {
		return err
	}
	if recovered {
		s.offsite.Rebuilt(db.ID, last, err)
	}
	if err == nil {
		return nil
	}
	undoErr := s.RevertSwitch(ctx, db)
	if undoErr == nil {
		undoErr = s.endRolledBack(db, op, err)
	}
	s.failWithoutData(db, err)
	return errors.Join(err, undoErr)
}

// failWithoutData makes a database failed whose data is not here, and says what a person can do.
func (s *Service) failWithoutData(db model.Database, cause error) {
	reason := "the recovery left the database in the copy off-site, because --only names others; " + leftRemedy
	if s.offsite == nil || !s.offsite.Left(db.ID) {
		reason = "its data could not be brought back; restart the appliance to try again, or restore another backup: " + databases.OperationMessage(cause)
	}
	s.databases.HandleInstanceState(db.ID, postgres.StateFailed, reason)
}

// rebuildPlan is how a database is rebuilt.
type rebuildPlan struct {
	RestorePlan
	lastCommit *time.Time // nil if it is unknown
	loss       string     // a sentence about what will be missing, empty for nothing
}

// rebuild does the work of Rebuild, and returns the time of the last commit. A backup of a recovered database that
// proves damaged is passed over: an earlier one may lead as far.
func (s *Service) rebuild(ctx context.Context, db model.Database, op model.DatabaseOperation, recovered bool) (last *time.Time, err error) {
	backups, err := s.rebuildFrom(ctx, db, op, recovered)
	if err != nil {
		return nil, err
	}
	var damage error
	for {
		plan, err := s.planRebuild(ctx, db, op.ID, backups, recovered)
		if err != nil {
			return nil, cmp.Or(damage, err)
		}
		op.Backup, op.Generation = plan.Backup.ID, db.LastGeneration()+1
		if err := s.setBuild(op); err != nil {
			return nil, err
		}
		if recovered {
			s.sayRebuilding(db, plan, damage)
		}
		_, err = s.buildAndSwitch(ctx, ctx, db, op, stage{build: s.unpacking(db, op, plan.RestorePlan), plan: &plan.RestorePlan})
		if !recovered || !errors.Is(err, repository.ErrDamaged) {
			return plan.lastCommit, err
		}
		damage = cmp.Or(damage, err)
		backups = slices.DeleteFunc(backups, func(b model.Backup) bool { return b.ID == plan.Backup.ID })
		if err := os.RemoveAll(s.databases.DataDirectory(db.ID, op.Generation)); err != nil {
			return nil, fmt.Errorf("remove what a damaged backup left: %w", err)
		}
	}
}

// sayRebuilding tells the report what a recovered database will have. damage is why a backup was passed over, nil for none.
func (s *Service) sayRebuilding(db model.Database, plan rebuildPlan, damage error) {
	if damage != nil {
		s.offsite.Warn(fmt.Sprintf("a backup of the database %s is damaged, and the earlier one %s is used: %v", db.Name, plan.Backup.ID, damage))
	}
	if plan.loss != "" {
		s.offsite.Warn(plan.loss)
	}
	s.offsite.Rebuilding(db.ID, plan.lastCommit)
}

// rebuildFrom returns the backups that a database can be rebuilt from, newest first. Those of one that is recovered are
// fetched.
func (s *Service) rebuildFrom(ctx context.Context, db model.Database, op model.DatabaseOperation, recovered bool) ([]model.Backup, error) {
	if recovered {
		progress := func(done, total int64) { s.databases.Progress.Set(op.ID, done, total) }
		if err := s.FetchBackups(ctx, db.ID, progress); err != nil {
			return nil, fmt.Errorf("fetch the backups: %w", err)
		}
		if err := s.databases.SetPhase(op.ID, "rebuilding"); err != nil {
			return nil, err
		}
	}
	backups, err := s.restorableBackups(db.ID)
	switch {
	case err != nil:
		return nil, err
	case len(backups) == 0 && recovered:
		return nil, model.Errorf(model.CodeConflict, "the off-site copy has no backup of the database: it was made so shortly before that its first backup was not complete")
	case len(backups) == 0:
		return nil, model.Errorf(model.CodeConflict, "the database was moved here without files, and has no backup")
	}
	return backups, nil
}

// planRebuild returns how a database is rebuilt from one of its backups, and reserves the space for it.
func (s *Service) planRebuild(ctx context.Context, db model.Database, operation string, backups []model.Backup, recovered bool) (plan rebuildPlan, err error) {
	if recovered {
		plan, err = s.planLast(ctx, db, backups)
	} else {
		plan.RestorePlan, err = s.planMoved(ctx, db, backups)
	}
	if err != nil {
		return plan, err
	}
	return plan, s.reserveForRestore(operation, plan.RestorePlan)
}

// planMoved plans a restore to the end of the newest backup that leads to the present data of a database, else of the newest
// of all.
func (s *Service) planMoved(ctx context.Context, db model.Database, backups []model.Backup) (RestorePlan, error) {
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return RestorePlan{}, err
	}
	i := slices.IndexFunc(backups, func(b model.Backup) bool { return leadsTo(archive, b, db.Generation) })
	return s.PlanBackup(ctx, backups[max(i, 0)])
}

// planLast plans a restore to the last commit that the archive has: of the present generation, if a backup leads to
// it, else of the newest one that served before it, else of the newest backup that can be restored. The archive lacks the
// present generation where a machine was lost while it switched to that: nothing was written there yet.
func (s *Service) planLast(ctx context.Context, db model.Database, backups []model.Backup) (plan rebuildPlan, err error) {
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return plan, err
	}
	var first error
	for _, generation := range append(generationsOf(db), 0) { // 0 stands for that of the backup
		for _, b := range backups {
			generation := cmp.Or(generation, b.Generation)
			if !leadsTo(archive, b, generation) {
				continue
			}
			plan, err = planEndOf(ctx, archive, db, b, generation)
			switch {
			case errors.Is(err, wal.ErrGap):
				first = cmp.Or(first, err)
				continue
			case err == nil && generation != db.Generation:
				plan.loss = earlierData(db, first)
			}
			return plan, err
		}
	}
	if first != nil {
		return plan, explainGap(first)
	}
	return plan, model.Errorf(model.CodeConflict, "no backup of the database leads to its present data")
}

// earlierData says that a database comes back with the data of an earlier generation than its present one, and why.
func earlierData(db model.Database, cause error) string {
	why := "the copy has none of them"
	if cause != nil {
		why = cause.Error()
	}
	return fmt.Sprintf("the present data of the database %s cannot be restored, and it is back as it was before its last restore or upgrade: %s", db.Name, why)
}

// planEndOf plans to restore a backup and to replay all WAL of a generation, up to what is missing or damaged. The error
// wraps wal.ErrGap if that is WAL of the backup itself.
func planEndOf(ctx context.Context, archive *wal.Archive, db model.Database, b model.Backup, generation int) (plan rebuildPlan, err error) {
	_, gap := planFrom(ctx, archive, b, wal.Target{Generation: generation, LSN: ^xlog.LSN(0)})
	if _, past := errors.AsType[*wal.OutsideError](gap); past {
		gap = nil
	}
	if gap != nil && !errors.Is(gap, wal.ErrGap) {
		return plan, gap
	}
	start, err := xlog.ParseLSN(b.StartLSN)
	if err != nil {
		return plan, err
	}
	window, err := archive.Window(ctx, generation, 0, start)
	if errors.Is(err, wal.ErrGap) { // it ends before a segment that is damaged
		gap, err = err, nil
	}
	if err != nil {
		return plan, err
	}
	if gap != nil && window.To == 0 {
		return plan, gap
	}
	plan.RestorePlan, err = planFrom(ctx, archive, b, wal.Target{Generation: generation, LSN: window.To})
	switch {
	case errors.Is(err, backup.ErrAfterTarget):
		return plan, cmp.Or(gap, fmt.Errorf("%w: it ends at %v, within the backup %s", wal.ErrGap, window.To, b.ID))
	case err != nil:
		return plan, err
	case gap != nil:
		plan.loss = fmt.Sprintf("WAL of the database %s is missing: it is back as it was before that, and its later changes are lost: %v", db.Name, gap)
	}
	if !window.LastCommit.IsZero() {
		plan.lastCommit = &window.LastCommit
	}
	return plan, nil
}

// setBuild records what an operation is going to build.
func (s *Service) setBuild(op model.DatabaseOperation) error {
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		if err := tx.Operations().Change(op.ID, func(o *model.DatabaseOperation) { o.Backup, o.Generation = op.Backup, op.Generation }); err != nil {
			return err
		}
		return tx.Databases().Change(op.Database, func(d *model.Database) { d.Begun = max(d.Begun, op.Generation) })
	})
}

// unpacking returns the function that unpacks the plan's backup into the data directory of an operation.
func (s *Service) unpacking(db model.Database, op model.DatabaseOperation, plan RestorePlan) func(context.Context) error {
	return func(ctx context.Context) error {
		return s.Unpack(ctx, plan, s.databases.DataDirectory(db.ID, op.Generation), backup.RestoreOptions{
			Progress: func(done, total int64) {
				s.databases.Progress.Set(op.ID, done, total)
				s.core.Space.Written(op.ID, done, total)
			},
		})
	}
}
