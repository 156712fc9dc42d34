package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"holdfast/backup"
	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// A verification restores a completed backup into a scratch directory, checks all of it and removes it. It only reads
// the archive and does not touch the database, which may be down. The backups' records say which backups are to be
// verified.

const (
	// VerificationDirectory is the directory below the data directory into which
	// backups are restored for verification.
	VerificationDirectory = "verification"
	// VerificationInterval is how often the worker checks whether a backup is due.
	VerificationInterval = 15 * time.Second
	// verificationAttempts is how often a verification that fails for a reason other than damage is tried.
	// verificationRetry is the wait after the first failure; it doubles with each attempt.
	verificationAttempts = 4
	verificationRetry    = time.Minute
	// verificationNice is the niceness of the scratch instance.
	verificationNice = 10
)

// VerifyNext verifies a backup if one is due, and reports whether it did.
func (s *Service) VerifyNext(ctx context.Context) bool {
	b, err := s.dueVerification(ctx)
	if err != nil {
		s.core.Log.Error("look for backups to verify", "error", err)
	}
	if err != nil || b.ID == "" {
		return false
	}
	ctx, endDatabase := s.core.Cancels.Add(ctx, databases.VerificationClaim(b.Database))
	defer endDatabase()
	ctx, endBackup := s.core.Cancels.Add(ctx, databases.VerificationClaim(b.ID))
	defer endBackup()
	db, op, err := s.beginVerification(b)
	if err != nil {
		return false // the backup is being removed
	}
	verifying, ended := s.databases.Cancelable(ctx, op.ID)
	defer ended()
	detail, err := s.Verify(verifying, db, b)
	if verifying.Err() != nil {
		err = s.abandonVerification(b, op, context.Cause(verifying))
	} else {
		err = s.endVerification(db, b, op, detail, err)
	}
	if err != nil {
		s.core.Log.Error("record the end of a verification", "backup", b.ID, "error", err)
	}
	return err == nil
}

// dueVerification returns the backup to verify next: the newest of its database, which a restore would start from, and
// first the database whose last verified backup is the oldest. So a database that is backed up often does not delay the
// others. The scheduled backup of an unused database is not due.
func (s *Service) dueVerification(ctx context.Context) (due model.Backup, err error) {
	newest, verified, owners := map[string]model.Backup{}, map[string]string{}, map[string]model.Database{}
	err = s.core.Meta.View(func(tx *meta.Tx) error {
		return tx.Backups().All(func(b model.Backup) error {
			switch {
			case b.Status != model.BackupCompleted || s.isAway(b.Database):
			case b.Verification.Status == model.VerificationVerified:
				verified[b.Database] = max(verified[b.Database], b.ID)
			case b.Verification.Status == model.VerificationUnverified && b.ID > newest[b.Database].ID &&
				core.IsDue(s.core.Clock(), b.Verification.NotBefore, cancelledRetry):
				if db, err := verifiable(tx, b); err == nil {
					newest[b.Database], owners[b.Database] = b, db
				}
			}
			return nil
		})
	})
	maps.DeleteFunc(newest, func(id string, b model.Backup) bool {
		return b.Type == model.BackupScheduled && s.isUnused(ctx, owners[id])
	})
	for _, b := range newest {
		if due.ID == "" || cmp.Or(cmp.Compare(verified[b.Database], verified[due.Database]), cmp.Compare(b.ID, due.ID)) < 0 {
			due = b
		}
	}
	return due, err
}

// verifiable returns the database of a backup, or core.ErrUnwanted if either is
// being removed.
func verifiable(tx *meta.Tx, b model.Backup) (model.Database, error) {
	db, err := tx.Databases().Get(b.Database)
	if err == nil && (b.DeletionPending || db.Trash != nil || db.Status == model.DatabaseDeleting) {
		err = core.ErrUnwanted
	}
	return db, err
}

func (s *Service) beginVerification(b model.Backup) (db model.Database, op model.DatabaseOperation, err error) {
	err = s.core.Meta.Update(func(tx *meta.Tx) error {
		now, err := tx.Backups().Get(b.ID)
		if err == nil {
			db, err = verifiable(tx, now)
		}
		if err != nil {
			return err
		}
		op = s.databases.NewOperation(db, model.OperationVerification, "restoring")
		op.Backup = b.ID
		if err := databases.InsertBeside(tx, op); err != nil {
			return err
		}
		return tx.Backups().Change(b.ID, func(b *model.Backup) { b.Verification.Status = model.VerificationRunning })
	})
	return db, op, err
}

// abandonVerification records that a verification did not come to a result. One that was cancelled is tried again
// after a day.
func (s *Service) abandonVerification(b model.Backup, op model.DatabaseOperation, cause error) error {
	record := func(tx *meta.Tx) error {
		if err := s.databases.CloseBeside(tx, op.ID, cause); err != nil {
			return err
		}
		ended, err := tx.Operations().Get(op.ID)
		if err != nil {
			return err
		}
		return s.postponeCancelled(tx, b.ID, ended)
	}
	return s.core.RecordLater(s.core.Meta.Update(record), "the end of a verification", record)
}

// cancelledRetry is the wait after a verification that was cancelled.
const cancelledRetry = 24 * time.Hour

// postponeCancelled makes a backup unverified again whose verification has ended without a result. It changes nothing if a
// restore has found meanwhile that the backup is damaged.
func (s *Service) postponeCancelled(tx *meta.Tx, backup string, ended model.DatabaseOperation) error {
	return tx.Backups().Change(backup, func(b *model.Backup) {
		if b.Verification.Status != model.VerificationRunning {
			return
		}
		b.Verification.Status = model.VerificationUnverified
		if ended.Status == model.OperationCancelled {
			b.Verification.NotBefore, b.Verification.Detail = s.core.Clock().Add(cancelledRetry), ended.Error
		}
	})
}

// noSpaceError postpones a verification until the disk has free space.
type noSpaceError struct{ cause error }

// Error implements error.
func (e noSpaceError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e noSpaceError) Unwrap() error { return e.cause }

// Verify restores the backup into a scratch directory, checks it and removes the
// directory. detail says what was checked.
func (s *Service) Verify(ctx context.Context, db model.Database, b model.Backup) (detail string, err error) {
	plan, err := s.PlanEnd(ctx, b)
	if err != nil {
		return "", err
	}
	return s.verifyPlan(ctx, db, plan, b.ID)
}

// verifyPlan is Verify of a plan, with an instance of that name.
func (s *Service) verifyPlan(ctx context.Context, db model.Database, plan RestorePlan, instance string) (detail string, err error) {
	if err := s.reserveForRestore(instance, plan); err != nil {
		return "", noSpaceError{cause: err}
	}
	defer s.core.Space.Release(instance)
	dir := filepath.Join(s.core.Config.DataDir, VerificationDirectory, instance)
	if err := os.RemoveAll(dir); err != nil { // left by an earlier attempt
		return "", fmt.Errorf("remove an earlier verification: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := s.unpackTimed(ctx, &plan, dir, backup.RestoreOptions{Workers: 1, Progress: func(done, total int64) { s.core.Space.Written(instance, done, total) }}); err != nil {
		return "", err
	}
	checked, err := s.verifyRecovery(ctx, db, plan, instance, dir)
	if err != nil {
		return "", err
	}
	return s.verificationDetail(ctx, plan, checked, dir)
}

// endVerification commits the outcome of a verification, and its audit entry if
// the outcome is final.
func (s *Service) endVerification(db model.Database, b model.Backup, op model.DatabaseOperation, detail string, cause error) error {
	v := s.verdict(b.Verification, detail, cause)
	if cause != nil {
		s.core.Log.Error("verification of a backup", "database", db.ID, "backup", b.ID, "status", v.Status, "error", cause)
	}
	record := func(tx *meta.Tx) error {
		if err := s.databases.CloseBeside(tx, op.ID, cause); err != nil {
			return err
		}
		now, err := tx.Backups().Get(b.ID)
		if err != nil || now.Verification.Status != model.VerificationRunning { // a restore has found damage meanwhile
			return err
		}
		err = tx.Backups().Change(b.ID, func(b *model.Backup) { b.Verification = v })
		if err != nil || v.Status == model.VerificationUnverified {
			return err
		}
		call := s.core.System(model.ActionBackupVerify, db.Organization, model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name})
		call.Note("verification", string(v.Status))
		call.Note("detail", v.Detail)
		return s.core.Audit(tx, call, cause)
	}
	return s.core.RecordLater(s.core.Meta.Update(record), "the end of a verification", record)
}

// verdict returns the verification record after an attempt. Only damage fails a
// backup at once: a lack of disk or memory says nothing about the backup.
func (s *Service) verdict(v model.Verification, detail string, cause error) model.Verification {
	now := s.core.Clock()
	_, noSpace := errors.AsType[noSpaceError](cause)
	switch {
	case cause == nil:
		return model.Verification{Status: model.VerificationVerified, At: &now, Detail: detail}
	case noSpace:
		v.NotBefore = now.Add(verificationRetry)
	case isDamage(cause) || v.Attempts+1 >= verificationAttempts:
		v.Status, v.At = model.VerificationFailed, &now
		v.Attempts++
	default:
		v.NotBefore = now.Add(verificationRetry << v.Attempts)
		v.Attempts++
	}
	v.Detail = databases.OperationMessage(cause)
	return v
}

func isDamage(err error) bool {
	for _, damage := range []error{repository.ErrDamaged, wal.ErrGap, backup.ErrUnsoundPage, postgres.ErrCorrupt} {
		if errors.Is(err, damage) {
			return true
		}
	}
	return false
}

// RecoverVerifications removes the remains of interrupted verifications and schedules the verifications again. It ends
// interrupted dry runs of upgrades, which use the same directory.
func (s *Service) RecoverVerifications() error {
	root := filepath.Join(s.core.Config.DataDir, VerificationDirectory)
	left, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("list verifications: %w", err)
	}
	ctx, cancel := context.WithTimeout(s.core.Lifetime, s.databases.Timeouts.Stop)
	defer cancel()
	for _, entry := range left {
		dir := filepath.Join(root, entry.Name())
		if err := errors.Join(postgres.EndUpgrade(ctx, s.databases.Majors.Find, dir), os.RemoveAll(dir)); err != nil {
			s.core.Log.Error("remove what an interrupted verification left", "path", dir, "error", err)
		}
	}
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		cancelled, err := s.databases.RecoverBeside(tx, model.OperationVerification, core.ErrInterrupted)
		for _, op := range cancelled {
			if err == nil {
				err = s.postponeCancelled(tx, op.Backup, op)
			}
		}
		if err == nil {
			_, err = s.databases.RecoverBeside(tx, model.OperationUpgradeDryRun, core.ErrInterrupted)
		}
		if err != nil {
			return err
		}
		return tx.Backups().ChangeWhere(func(b model.Backup) bool { return b.Verification.Status == model.VerificationRunning },
			func(b *model.Backup) { b.Verification.Status = model.VerificationUnverified })
	})
}
