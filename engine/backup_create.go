package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/backup"
	"holdfast/backup/repository"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// backupClaim is what a backup of a database claims; the database itself
// stays free for what does not disturb a backup.
func backupClaim(database string) string { return database + "/backup" }

// backing is what a backup says it is doing.
const backing = "a backup"

// BackupCreate begins a backup and returns its record at once.
func (e *Engine) BackupCreate(call *model.Call, database string) (model.Backup, error) {
	if err := e.onlyOnce(call); err != nil {
		return model.Backup{}, err
	}
	db, err := e.database(call, database)
	if err != nil {
		return model.Backup{}, err
	}
	b, _, err := e.beginBackup(call, db, model.BackupManual)
	return b, err
}

// beginBackup begins a backup; done is closed when it has ended.
func (e *Engine) beginBackup(call *model.Call, db model.Database, t model.BackupType) (b model.Backup, done <-chan struct{}, err error) {
	var ctx context.Context
	var ended func()
	release, err := e.claims.takeAnd(backupClaim(db.ID), backing, func() { ctx, ended = e.cancelableBackup(db.ID, t) })
	if err != nil {
		return model.Backup{}, nil, err
	}
	db, b, op, err := e.recordBackup(call, db, t)
	if err != nil {
		release()
		ended()
		return model.Backup{}, nil, err
	}
	over := make(chan struct{})
	e.work.Go(func() {
		defer close(over)
		defer ended()
		defer release()
		e.runBackup(ctx, db, b, op)
	})
	return b, over, nil
}

// cancelableBackup returns the context of a backup, which ends with the engine
// and when the backup has to give way.
func (e *Engine) cancelableBackup(database string, t model.BackupType) (_ context.Context, ended func()) {
	ctx, end := e.cancels.add(e.ctx, backupClaim(database))
	if t != model.BackupScheduled {
		return ctx, end
	}
	ctx, gaveWay := e.cancels.add(ctx, scheduledBackup(database))
	return ctx, func() { gaveWay(); end() }
}

// recordBackup commits a pending backup and the operation that makes it. It
// returns the database as it is now that nothing can restore it: the caller's
// record may be of a generation before.
func (e *Engine) recordBackup(
	call *model.Call, db model.Database, t model.BackupType,
) (now model.Database, b model.Backup, op model.DatabaseOperation, err error) {
	if db.Sandbox {
		return now, b, op, noBackupsOf(db)
	}
	if err := e.roomForBackup(db.ID); err != nil {
		return now, b, op, err
	}
	stored, err := e.backupBytes(db.Organization)
	if err != nil {
		return now, b, op, err
	}
	b = model.Backup{
		ID: e.newID(model.ResourceBackup), Organization: db.Organization, Database: db.ID,
		Type: t, Status: model.BackupPending, StartedAt: e.clock(),
		Verification: model.Verification{Status: model.VerificationUnverified},
	}
	op = e.newOperation(db, model.OperationBackup, "copying")
	op.Backup, op.Status = b.ID, model.OperationPending
	call.Resource = model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name}
	err = e.change(call, func(tx *meta.Tx) (err error) {
		if now, err = databaseOf(tx, db.Organization, db.ID); err != nil {
			return err
		}
		b.Version, b.Generation = now.Version, now.Generation
		if status, reason := e.liveStatus(now); status != model.DatabaseAvailable {
			return notAvailable(status, reason)
		}
		if err := e.refuseFull(tx, db.Organization, model.MetricBackupBytes, stored); err != nil {
			return err
		}
		if err := tx.Backups().Insert(b); err != nil {
			return err
		}
		return insertOperation(tx, op, model.DatabaseAvailable)
	})
	return now, b, op, err
}

// noBackupsOf refuses what needs the backups of a sandbox.
func noBackupsOf(sandbox model.Database) error {
	return model.Errorf(model.CodeForbidden,
		"%s is a sandbox, which is deleted when its command ends: it has no backups", sandbox.Name)
}

// runBackup makes the backup and records how that ended.
func (e *Engine) runBackup(ctx context.Context, db model.Database, b model.Backup, op model.DatabaseOperation) {
	defer e.done.drop(b.ID)
	defer e.done.drop(op.ID)
	var result backup.Result
	err := e.startBackup(b.ID, op.ID)
	if err == nil {
		result, err = e.takeBackup(ctx, db, b, op)
	}
	cut := err != nil && ctx.Err() != nil
	if cut {
		if err = context.Cause(ctx); errors.Is(err, context.Canceled) {
			err = errInterrupted
		}
		e.log.Info("backup was cut short", "database", db.ID, "backup", b.ID, "reason", err)
	} else if err != nil {
		e.log.Error("backup failed", "database", db.ID, "backup", b.ID, "error", err)
	}
	if err != nil {
		if err := e.dropStored(db.ID, b.ID); err != nil {
			e.log.Error("remove what a failed backup left", "database", db.ID, "backup", b.ID, "error", err)
		}
	}
	e.collectChunks(ctx, db.ID)
	if recordErr := e.endBackup(b, op, result, err, cut); recordErr != nil {
		e.log.Error("record the end of a backup", "backup", b.ID, "error", recordErr)
	}
	e.backupEnded(db, b, err, cut)
	if err == nil {
		e.exports.nudge()
		e.proofs.nudge()
	}
}

var errInterrupted = model.Errorf(model.CodeConflict, "the appliance was stopped before this was done")

func (e *Engine) takeBackup(
	ctx context.Context, db model.Database, b model.Backup, op model.DatabaseOperation,
) (backup.Result, error) {
	repo, err := e.repository(db.ID)
	if err != nil {
		return backup.Result{}, err
	}
	wal, err := e.liveWAL(db)
	if err != nil {
		return backup.Result{}, err
	}
	conn, err := e.instances.Connect(ctx, db.ID, maintenance)
	if err != nil {
		return backup.Result{}, fmt.Errorf("connect for backup: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	latest, err := e.latestBackup(ctx, db.ID, repo)
	if err != nil {
		return backup.Result{}, err
	}
	return backup.Take(ctx, conn, repo, wal, backup.Options{
		ID: b.ID, Label: db.Name, Type: string(b.Type), Base: latest, Generation: db.Generation, Whole: e.readsWhole(db.ID),
		Patience: e.waits.wal,
		Progress: func(done, total int64) {
			e.done.set(b.ID, done, total)
			e.done.set(op.ID, done, total)
		},
	})
}

// startBackup records that the work on a pending backup begins.
func (e *Engine) startBackup(id, operation string) error {
	return e.meta.Update(func(tx *meta.Tx) error {
		if _, err := tx.Backups().Update(id, func(b *model.Backup) error {
			b.Status = model.BackupRunning
			return nil
		}); err != nil {
			return err
		}
		_, err := tx.Operations().Update(operation, func(o *model.DatabaseOperation) error {
			o.Status = model.OperationRunning
			return nil
		})
		return err
	})
}

// wholeInterval is how often all of a database is read for a backup, and not
// only what the WAL says has changed: bit rot is in no WAL.
const wholeInterval = 7 * 24 * time.Hour

func (e *Engine) readsWhole(database string) bool {
	records, err := e.backupRecords(database)
	for _, b := range records {
		if now := e.clock(); b.Status == model.BackupCompleted && b.WholeRead && !isAhead(b, now) && now.Before(b.StartedAt.Add(wholeInterval)) {
			return false
		}
	}
	return err == nil
}

// latestBackup returns the id of the database's newest completed backup, ""
// when there is none. What is damaged must not be built upon: see learnDamage.
func (e *Engine) latestBackup(ctx context.Context, database string, repo *repository.Repository) (id string, err error) {
	var newest *model.Backup
	err = e.meta.View(func(tx *meta.Tx) (err error) {
		newest, err = newestCompleted(tx, database)
		return err
	})
	if err != nil || newest == nil {
		return "", err
	}
	return newest.ID, e.learnDamage(ctx, *newest, repo)
}

// learnDamage has all that is stored read before something is built upon it,
// where damage is known, by the newest backup's proof, or by this process,
// whoever met it. That was one record, and there may be others.
func (e *Engine) learnDamage(ctx context.Context, newest model.Backup, repo *repository.Repository) error {
	err := checkStored(repo, newest.ID)
	if err != nil && !errors.Is(err, repository.ErrDamaged) {
		return err
	}
	if repo.Verified() || err == nil && unfit(newest) == 0 && !repo.Damaged() {
		return nil
	}
	report, err := repo.Verify(ctx, nil)
	if err != nil {
		return err
	}
	if damage := report.Err(); damage != nil {
		e.log.Error("stored backups are damaged; what is stored anew now does without", "database", newest.Database, "error", damage)
	}
	return nil
}

// checkStored checks that nothing of a backup is missing. One that is not there
// at all is built upon by nobody.
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

func (e *Engine) updateBackup(id string, change func(*model.Backup)) error {
	return e.meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Backups().Update(id, func(b *model.Backup) error {
			change(b)
			return nil
		})
		return err
	})
}

// recordedStep is what the end of a backup is recorded to.
const recordedStep = time.Millisecond

// endAsRecorded rounds a backup's end up: it is the earliest moment that can be
// restored from the backup, and no form it is shown or asked for in may cut it
// short.
func endAsRecorded(at time.Time) time.Time {
	return at.Add(recordedStep - time.Nanosecond).Truncate(recordedStep)
}

// endBackup commits the end of a backup: its figures, or its error.
func (e *Engine) endBackup(b model.Backup, op model.DatabaseOperation, result backup.Result, cause error, cut bool) error {
	completed := endAsRecorded(e.clock())
	record := func(tx *meta.Tx) error {
		_, err := tx.Backups().Update(b.ID, func(b *model.Backup) error {
			b.CompletedAt = &completed
			if cause != nil {
				b.Status, b.Error, b.Cut = model.BackupFailed, operationMessage(cause), cut
				return nil
			}
			b.Status, b.Progress = model.BackupCompleted, 100
			b.Version, b.Timeline = result.PostgresVersion, int(result.Timeline)
			b.StartLSN, b.StopLSN = result.Start.String(), result.Stop.String()
			b.SizeBytes, b.StoredBytes = result.SizeBytes, result.StoredBytes
			b.ManifestBLAKE3, b.WholeRead = result.ManifestBLAKE3, result.WholeReason != ""
			return nil
		})
		if err != nil {
			return err
		}
		if cause == nil {
			if err := e.requestExport(tx, b); err != nil {
				return err
			}
		}
		if err := e.closeOperation(tx, op.ID, cause); err != nil {
			return err
		}
		_, err = tx.Databases().Update(b.Database, func(d *model.Database) error {
			if d.Operation == op.ID {
				d.Operation = ""
			}
			return nil
		})
		return err
	}
	return e.recordLater(e.meta.Update(record), "the end of a backup", record)
}
