package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/backup"
	"holdfast/backup/repository"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BackupClaim describes a backup in its claim.
const BackupClaim = "a backup"

// BackupCreate starts a backup and returns its record at once.
func (s *Service) BackupCreate(call *model.Call, database string) (model.Backup, error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.Backup{}, err
	}
	db, err := s.databases.Database(call, database)
	if err != nil {
		return model.Backup{}, err
	}
	b, _, err := s.BeginBackup(call, db, model.BackupManual)
	return b, err
}

// BeginBackup starts a backup; done is closed when the backup has ended.
func (s *Service) BeginBackup(call *model.Call, db model.Database, t model.BackupType) (b model.Backup, done <-chan struct{}, err error) {
	var ctx context.Context
	var ended func()
	brief := t == model.BackupScheduled && s.lacksBackup(db.ID) // there is little in the database yet
	release, err := s.core.Claims.TakeAnd(databases.BackupClaim(db.ID), BackupClaim, brief, func() { ctx, ended = s.CancelableBackup(db.ID, t) })
	if err != nil {
		return model.Backup{}, nil, err
	}
	db, b, op, err := s.RecordBackup(call, db, t)
	if err != nil {
		release()
		ended()
		return model.Backup{}, nil, err
	}
	over := make(chan struct{})
	s.core.Work.Go(func() {
		defer close(over)
		defer ended()
		defer release()
		s.RunBackup(ctx, db, b, op)
	})
	return b, over, nil
}

// CancelableBackup returns the context of a backup, which is cancelled when the engine closes or another operation
// takes precedence. The caller calls ended.
func (s *Service) CancelableBackup(database string, t model.BackupType) (_ context.Context, ended func()) {
	ctx, end := s.core.Cancels.Add(s.core.Lifetime, databases.BackupClaim(database))
	if t != model.BackupScheduled {
		return ctx, end
	}
	ctx, gaveWay := s.core.Cancels.Add(ctx, databases.ScheduledBackup(database))
	return ctx, func() { gaveWay(); end() }
}

// RecordBackup commits a pending backup and its operation. It returns the current
// record of the database, which can no longer be restored to another generation:
// the caller's record may be older.
func (s *Service) RecordBackup(
	call *model.Call, db model.Database, t model.BackupType,
) (now model.Database, b model.Backup, op model.DatabaseOperation, err error) {
	if db.Sandbox {
		return now, b, op, noBackupsOf(db)
	}
	if err := s.checkSpaceForBackup(db.ID); err != nil {
		return now, b, op, err
	}
	stored, err := s.BackupBytes(db.Organization)
	if err != nil {
		return now, b, op, err
	}
	b = model.Backup{
		ID: s.core.NewID(model.ResourceBackup), Organization: db.Organization, Database: db.ID,
		Type: t, Status: model.BackupPending, StartedAt: s.core.Clock(),
		Verification: model.Verification{Status: model.VerificationUnverified},
	}
	op = s.databases.NewOperation(db, model.OperationBackup, "copying")
	op.Backup, op.Status = b.ID, model.OperationPending
	call.Resource = model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name}
	err = s.core.Change(call, func(tx *meta.Tx) (err error) {
		if now, err = databases.DatabaseOf(tx, db.Organization, db.ID); err != nil {
			return err
		}
		b.Version, b.Generation = now.Version, now.Generation
		if err := s.databases.RefuseUnavailable(now); err != nil {
			return err
		}
		if err := s.core.RefuseFull(tx, db.Organization, model.MetricBackupBytes, stored); err != nil {
			return err
		}
		if err := tx.Backups().Insert(b); err != nil {
			return err
		}
		return databases.InsertOperation(tx, op, model.DatabaseAvailable)
	})
	return now, b, op, err
}

// noBackupsOf is the error for operations that need backups of a sandbox.
func noBackupsOf(sandbox model.Database) error {
	return model.Errorf(model.CodeForbidden,
		"%s is a sandbox, which is deleted when its command ends: it has no backups", sandbox.Name)
}

// RunBackup makes the backup and records its outcome.
func (s *Service) RunBackup(ctx context.Context, db model.Database, b model.Backup, op model.DatabaseOperation) {
	defer s.databases.Progress.Drop(b.ID)
	defer s.databases.Progress.Drop(op.ID)
	ctx, ended := s.databases.Cancelable(ctx, op.ID)
	defer ended()
	var result backup.Result
	err := s.StartBackup(b.ID, op.ID)
	if err == nil {
		result, err = s.TakeBackup(ctx, db, b, func(done, total int64) { s.databases.Progress.Set(op.ID, done, total) })
	}
	cut := err != nil && ctx.Err() != nil
	if cut {
		if err = context.Cause(ctx); errors.Is(err, context.Canceled) {
			err = core.ErrInterrupted
		}
		s.core.Log.Info("backup was cut short", "database", db.ID, "backup", b.ID, "reason", err)
	} else if err != nil {
		s.core.Log.Error("backup failed", "database", db.ID, "backup", b.ID, "error", err)
	}
	if err != nil {
		if err := s.dropStored(db.ID, b.ID); err != nil {
			s.core.Log.Error("remove what a failed backup left", "database", db.ID, "backup", b.ID, "error", err)
		}
	}
	s.collectChunks(ctx, db.ID)
	if recordErr := s.endBackup(db, b, op, result, err, cut); recordErr != nil {
		s.core.Log.Error("record the end of a backup", "backup", b.ID, "error", recordErr)
	}
	s.backupEnded(db, b, err)
	if err == nil {
		s.Exports.Wake()
		s.Verifications.Wake()
	}
}

// TakeBackup copies the database into the repository.
func (s *Service) TakeBackup(
	ctx context.Context, db model.Database, b model.Backup, progress func(done, total int64),
) (backup.Result, error) {
	release, err := s.databases.Awaken(db, false)
	if err != nil {
		return backup.Result{}, err
	}
	defer release()
	repo, err := s.Repository(db.ID)
	if err != nil {
		return backup.Result{}, err
	}
	wal, err := s.liveWAL(db)
	if err != nil {
		return backup.Result{}, err
	}
	conn, err := s.databases.Instances.Connect(ctx, db.ID, databases.Maintenance)
	if err != nil {
		return backup.Result{}, fmt.Errorf("connect for backup: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	latest, err := s.latestBackup(ctx, db.ID, repo)
	if err != nil {
		return backup.Result{}, err
	}
	return backup.Take(ctx, conn, repo, wal, backup.Options{
		ID: b.ID, Label: db.Name, Type: string(b.Type), Base: latest, Generation: db.Generation, Whole: s.readsEverything(db.ID),
		Patience: s.databases.Timeouts.WAL,
		Progress: func(done, total int64) {
			s.databases.Progress.Set(b.ID, done, total)
			progress(done, total)
		},
	})
}

// StartBackup records that a pending backup is running.
func (s *Service) StartBackup(id, operation string) error {
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		if err := tx.Backups().Change(id, func(b *model.Backup) { b.Status = model.BackupRunning }); err != nil {
			return err
		}
		return tx.Operations().Change(operation, func(o *model.DatabaseOperation) { o.Status = model.OperationRunning })
	})
}

// fullReadInterval is how often a backup reads the whole database instead of only the pages that the WAL says have
// changed: the WAL does not show bit rot.
const fullReadInterval = 7 * 24 * time.Hour

func (s *Service) readsEverything(database string) bool {
	records, err := s.backupRecords(database)
	for _, b := range records {
		if now := s.core.Clock(); b.Status == model.BackupCompleted && b.WholeRead && !isAhead(b, now) && now.Before(b.StartedAt.Add(fullReadInterval)) {
			return false
		}
	}
	return err == nil
}

// latestBackup returns the id of the database's newest completed backup, ""
// when there is none. The next backup must not build on damaged data: see
// verifyIfDamaged.
func (s *Service) latestBackup(ctx context.Context, database string, repo *repository.Repository) (id string, err error) {
	newest, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (*model.Backup, error) { return databases.NewestCompleted(tx, database) })
	if err != nil || newest == nil {
		return "", err
	}
	return newest.ID, s.verifyIfDamaged(ctx, *newest, repo)
}

// verifyIfDamaged reads all stored data before a backup builds on it, if the newest backup's verification or any read
// by this process has found damage. The known damage is one record; there may be more.
func (s *Service) verifyIfDamaged(ctx context.Context, newest model.Backup, repo *repository.Repository) error {
	err := checkStored(repo, newest.ID)
	if err != nil && !errors.Is(err, repository.ErrDamaged) {
		return err
	}
	if repo.Verified() || err == nil && verificationRank(newest) == 0 && !repo.Damaged() {
		return nil
	}
	report, err := repo.Verify(ctx, nil)
	if err != nil {
		return err
	}
	if damage := report.Err(); damage != nil {
		s.core.Log.Error("stored backups are damaged; what is stored anew now does without", "database", newest.Database, "error", damage)
	}
	return nil
}

// checkStored checks that no part of a backup is missing. A completely absent backup is fine: nothing builds on it.
func checkStored(repo *repository.Repository, id string) error {
	source, err := repo.Snapshot(id)
	if errors.Is(err, repository.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	return source.Check()
}

// UpdateBackup changes the record of a backup.
func (s *Service) UpdateBackup(id string, change func(*model.Backup)) error {
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Backups().Change(id, change)
	})
}

// endPrecision is the precision with which the end of a backup is recorded.
const endPrecision = time.Millisecond

// roundUpEnd rounds the end of a backup up. It is the earliest time that can be
// restored from the backup, so no representation of it may round it down.
func roundUpEnd(at time.Time) time.Time {
	return at.Add(endPrecision - time.Nanosecond).Truncate(endPrecision)
}

// endBackup commits the end of a backup: its statistics, or its error.
func (s *Service) endBackup(db model.Database, b model.Backup, op model.DatabaseOperation, result backup.Result, cause error, cut bool) error {
	end := backupResult{at: roundUpEnd(s.core.Clock()), result: result, err: cause, cut: cut}
	if cause == nil && b.Type == model.BackupScheduled && s.isUnused(s.core.Lifetime, db) {
		end.unused = unusedDetail
	}
	record := func(tx *meta.Tx) error {
		if err := s.recordResult(tx, b, end); err != nil {
			return err
		}
		if err := s.databases.CloseOperation(tx, op.ID, cause); err != nil {
			return err
		}
		return tx.Databases().Change(b.Database, func(d *model.Database) {
			if d.Operation == op.ID {
				d.Operation = ""
			}
		})
	}
	return s.core.RecordLater(s.core.Meta.Update(record), "the end of a backup", record)
}

// backupResult is how a backup has ended.
type backupResult struct {
	at     time.Time
	result backup.Result
	err    error
	cut    bool   // err is that it was cut short
	unused string // why it needs no verification yet, or ""
}

// recordResult records the statistics of a backup, or its error, and that an export is owed.
func (s *Service) recordResult(tx *meta.Tx, b model.Backup, end backupResult) error {
	err := tx.Backups().Change(b.ID, func(b *model.Backup) {
		b.CompletedAt = &end.at
		if end.err != nil {
			b.Status, b.Error, b.Cut = model.BackupFailed, databases.OperationMessage(end.err), end.cut
			return
		}
		result := end.result
		b.Status, b.Progress = model.BackupCompleted, 100
		b.Version, b.Timeline = result.PostgresVersion, int(result.Timeline)
		b.StartLSN, b.StopLSN = result.Start.String(), result.Stop.String()
		b.SizeBytes, b.StoredBytes = result.SizeBytes, result.StoredBytes
		b.ManifestBLAKE3, b.WholeRead = result.ManifestBLAKE3, result.WholeReason != ""
		if end.unused != "" {
			b.Verification.Detail = end.unused
		}
	})
	if err != nil || end.err != nil {
		return err
	}
	return s.RequestExport(tx, b)
}
