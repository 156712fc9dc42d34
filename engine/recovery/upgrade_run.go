package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"holdfast/backup"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
)

// upgrading is an upgrade of a database, or its dry run, that is under way.
type upgrading struct {
	service *Service
	db      model.Database
	op      model.DatabaseOperation
	to      binaries.Set
	awake   func() // lets the database sleep again
	stopped atomic.Bool
}

// close releases what the upgrade holds. It may be called more than once, and of nil.
func (u *upgrading) close() {
	if u != nil && u.awake != nil {
		u.awake()
	}
}

// hasStopped reports whether the upgrade has stopped the database, which must be started again if it fails. It is false
// of nil.
func (u *upgrading) hasStopped() bool { return u != nil && u.stopped.Load() }

// build backs the database up, stops it and makes the directory of the next generation. An interrupted build is rolled
// back by the next start of the appliance, which removes both directories: the one that served is not touched.
func (u *upgrading) build(ctx context.Context) error {
	s := u.service
	b, err := s.backUpWithin(ctx, u.db, u.op)
	if err == nil {
		err = s.reserveForUpgrade(u.op.ID, u.db.ID, b.SizeBytes)
	}
	if err == nil {
		err = s.databases.SetPhase(u.op.ID, "copying")
	}
	if err != nil {
		return err
	}
	if u.op.Upgrade.Slots, err = s.databases.UpgradeSlots(ctx, u.db); err != nil {
		return err
	}
	if err := u.stop(ctx); err != nil {
		return fmt.Errorf("stop the database: %w", err)
	}
	began := time.Now()
	from, to := s.databases.DataDirectory(u.db.ID, u.op.CopyGeneration()), s.databases.DataDirectory(u.db.ID, u.op.Generation)
	copied, err := backup.CloneStopped(ctx, s.databases.DataDirectory(u.db.ID, u.db.Generation), from)
	if err != nil {
		return err
	}
	cloning := time.Since(began)
	done, err := u.upgradeCopy(ctx, from, to)
	if err != nil {
		return err
	}
	s.noteUpgradePace(copied.SizeBytes, cloning, time.Since(began)-cloning)
	if err := os.RemoveAll(from); err != nil {
		return fmt.Errorf("remove the copy: %w", err)
	}
	u.op.Upgrade.Analyzed = done.Analyzed
	return s.setUpgrade(u.op.ID, func(r *model.Upgrade) { report(r, done, copied.SizeBytes, u.op.Upgrade.Slots) })
}

// stop stops the database. From here on its clients wait.
func (u *upgrading) stop(ctx context.Context) error {
	now := u.service.core.Clock()
	if err := u.service.setUpgrade(u.op.ID, func(r *model.Upgrade) { r.StoppedAt = &now }); err != nil {
		return err
	}
	u.op.Upgrade.StoppedAt = &now
	u.stopped.Store(true)
	return u.service.databases.StopInstance(ctx, u.db.ID)
}

// upgradeCopy upgrades the data directory from, whose server was shut down, and makes to. It uses from up.
func (u *upgrading) upgradeCopy(ctx context.Context, from, to string) (done postgres.Upgraded, err error) {
	s := u.service
	spec, err := s.ScratchInstance(ctx, u.db, u.op.ID, from)
	if err != nil {
		return done, err
	}
	// pg_upgrade loads the libraries of all extensions, and some load at a server's start only. No job of the tenant's runs.
	if served, err := s.databases.Spec(ctx, u.db); err == nil {
		spec.Config.Preload = served.Config.Preload
	}
	next := spec
	next.Bin, next.Dir = u.to, to
	defer func() {
		if err != nil {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.databases.Timeouts.Stop)
			defer cancel()
			err = errors.Join(err, postgres.EndUpgrade(ending, s.databases.Majors.Find, from, to), spec.Config.ClearSocket())
		}
	}()
	return postgres.Upgrade{
		From: spec, To: next, Database: u.db.Name, Log: s.core.Log.With("database", u.db.ID),
		Step: func(step postgres.UpgradeStep) error {
			s.databases.Progress.Set(u.op.ID, progressOf(step), 100)
			return s.databases.SetPhase(u.op.ID, string(step))
		},
	}.Run(ctx)
}

// report records what an upgrade has found, and the replication slots that it drops.
func report(r *model.Upgrade, done postgres.Upgraded, size int64, slots []string) {
	r.SizeBytes, r.Notes, r.Analyzed, r.Slots = size, done.Notes, done.Analyzed, slots
	for _, slot := range slots {
		r.Notes = append(r.Notes, fmt.Sprintf("the replication slot %s is dropped: its client must copy everything again", slot))
	}
	for _, x := range done.Updates {
		r.Updates = append(r.Updates, model.ExtensionUpdate{Name: x.Name, From: x.Installed, To: x.Update()})
	}
}

// The progress of an upgrade, in percent: backupShare is that of its backup, and the others are where a step begins.
const backupShare = 40

func progressOf(step postgres.UpgradeStep) int64 {
	return map[postgres.UpgradeStep]int64{postgres.StepPreparing: 60, postgres.StepUpgrading: 65, postgres.StepAnalyzing: 90}[step]
}

// backUpWithin makes a backup as a part of another operation, which has claimed the database's backups.
func (s *Service) backUpWithin(ctx context.Context, db model.Database, op model.DatabaseOperation) (model.Backup, error) {
	b := model.Backup{
		ID: s.core.NewID(model.ResourceBackup), Organization: db.Organization, Database: db.ID, Type: model.BackupManual, Status: model.BackupRunning,
		StartedAt: s.core.Clock(), Version: db.Version, Generation: db.Generation, Verification: model.Verification{Status: model.VerificationUnverified},
	}
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		if err := tx.Backups().Insert(b); err != nil {
			return err
		}
		return tx.Operations().Change(op.ID, func(o *model.DatabaseOperation) { o.Backup = b.ID })
	})
	if err != nil {
		return b, err
	}
	defer s.databases.Progress.Drop(b.ID)
	result, err := s.TakeBackup(ctx, db, b, func(done, total int64) { s.databases.Progress.Set(op.ID, done, total*100/backupShare) })
	if err != nil {
		err = errors.Join(fmt.Errorf("back up first: %w", err), s.dropStored(db.ID, b.ID))
	}
	end := backupResult{at: roundUpEnd(s.core.Clock()), result: result, err: err, cut: ctx.Err() != nil}
	record := func(tx *meta.Tx) error { return s.recordResult(tx, b, end) }
	recordErr := s.core.RecordLater(s.core.Meta.Update(record), "the end of a backup", record)
	s.archives.changed(db.ID)
	s.backupEnded(db, b, err)
	b.SizeBytes = result.SizeBytes
	return b, errors.Join(err, recordErr)
}

// noteUpgraded records how long the database was down and reports the replication slots that are lost, if op is an
// upgrade that is about to end.
func (s *Service) noteUpgraded(db model.Database, op model.DatabaseOperation) {
	if op.Upgrade == nil || op.Upgrade.StoppedAt == nil {
		return
	}
	down := s.core.Clock().Sub(*op.Upgrade.StoppedAt)
	if err := s.setUpgrade(op.ID, func(r *model.Upgrade) { r.Down = down }); err != nil {
		s.core.Log.Warn("record how long an upgrade took", "database", op.Database, "error", err)
	}
	for _, slot := range op.Upgrade.Slots {
		s.databases.ReportUpgraded(db, slot)
	}
}

// analyzeLimit bounds the statistics that are taken after an upgrade.
const analyzeLimit = time.Hour

// analyze takes the planner's statistics that an upgrade has left out, as the owner, while clients work.
func (s *Service) analyze(ctx context.Context, db model.Database) {
	ctx, cancel := context.WithTimeout(ctx, analyzeLimit)
	defer cancel()
	conn, err := s.databases.Instances.ConnectLocal(ctx, db.ID)
	if err == nil {
		defer conn.Close(context.WithoutCancel(ctx))
		err = postgres.Analyze(ctx, conn)
	}
	if err != nil && ctx.Err() == nil {
		s.core.Log.Warn("take statistics after an upgrade", "database", db.ID, "reason", databases.OperationMessage(err))
	}
}
