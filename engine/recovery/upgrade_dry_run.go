package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast/backup"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// dryRun restores the plan's backup, upgrades it, starts the result, and removes it.
func (u *upgrading) dryRun(outer context.Context, p RestorePlan) (err error) {
	s := u.service
	ctx, ended := s.databases.Cancelable(outer, u.op.ID)
	defer ended()
	from, to := s.trialDirectories(u.op.ID)
	if err := os.MkdirAll(filepath.Dir(from), 0o700); err != nil {
		return fmt.Errorf("make a directory for a dry run: %w", err)
	}
	defer func() {
		err = errors.Join(because(ctx, s.core.Lifetime, err), os.RemoveAll(from), os.RemoveAll(to))
	}()
	if err := u.restoreTrial(ctx, &p, from); err != nil {
		return err
	}
	began := time.Now()
	done, err := u.upgradeCopy(ctx, from, to)
	if err != nil {
		return foundIn(p.Backup, err)
	}
	upgrading := time.Since(began)
	slots, err := s.databases.UpgradeSlots(ctx, u.db) // of the running database: backups have none
	if err != nil {
		return err
	}
	s.noteUpgradePace(p.Backup.SizeBytes, 0, upgrading)
	if err := u.startTrial(ctx, to); err != nil {
		return err
	}
	took := time.Since(began)
	down := took + s.estimateCopy(u.db.ID, p.Backup.SizeBytes)
	return s.setUpgrade(u.op.ID, func(r *model.Upgrade) {
		report(r, done, p.Backup.SizeBytes, slots)
		r.Down = down
	})
}

// foundIn says in which backup a dry run found what the new version refuses: it may have been mended since.
func foundIn(b model.Backup, err error) error {
	refused, ok := errors.AsType[*model.Error](err)
	if !ok {
		return err
	}
	return &model.Error{
		Code: refused.Code, Err: err,
		Message: fmt.Sprintf("%s (found in the backup of %s; if that has been mended since, make a new backup first)", refused.Message, b.StartedAt.UTC().Format(time.RFC3339)),
	}
}

// restoreTrial makes the data directory dir from the plan's backup.
func (u *upgrading) restoreTrial(ctx context.Context, p *RestorePlan, dir string) error {
	s := u.service
	progress := func(done, total int64) { s.databases.Progress.Set(u.op.ID, done, total*100/backupShare) }
	if err := s.unpackTimed(ctx, p, dir, backup.RestoreOptions{Progress: progress}); err != nil {
		return err
	}
	scratch, err := s.ScratchInstance(ctx, u.db, u.op.ID, dir)
	if err != nil {
		return err
	}
	if err := s.StartRecovered(ctx, scratch, *p, func(int64, int64) {}); err != nil {
		return errors.Join(fmt.Errorf("recover the backup: %w", err), s.databases.StopInstance(ctx, scratch.ID))
	}
	return s.StopRecovered(ctx, scratch)
}

// startTrial starts the upgraded data as the switch does, with the database's settings and roles, and stops it.
func (u *upgrading) startTrial(ctx context.Context, dir string) error {
	s := u.service
	if err := s.databases.SetPhase(u.op.ID, "starting"); err != nil {
		return err
	}
	scratch, err := s.ScratchInstance(ctx, u.db, u.op.ID, dir)
	if err != nil {
		return err
	}
	if err := s.databases.Instances.Start(ctx, scratch); err != nil {
		return errors.Join(fmt.Errorf("start the upgraded data: %w", err), s.databases.StopInstance(ctx, scratch.ID))
	}
	return errors.Join(s.databases.Provision(ctx, scratch.ID, u.db), s.StopRecovered(ctx, scratch))
}

// endDryRun records the outcome. When the appliance stops, the next start does.
func (u *upgrading) endDryRun(cause error) {
	s := u.service
	if s.core.Lifetime.Err() != nil {
		return
	}
	if cause != nil {
		s.core.Log.Warn("the dry run of an upgrade failed", "database", u.db.ID, "operation", u.op.ID, "reason", cause)
		cause = s.core.ExplainFailed(cause)
	}
	record := func(tx *meta.Tx) error { return s.databases.CloseBeside(tx, u.op.ID, cause) }
	if err := s.core.RecordLater(s.core.Meta.Update(record), "the end of a dry run", record); err != nil {
		s.core.Log.Error("record the end of a dry run", "operation", u.op.ID, "error", err)
	}
}
