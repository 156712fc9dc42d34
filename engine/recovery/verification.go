package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// A proof restores a completed backup beside everything, looks at all of it,
// and throws it away. It reads the archive only; the database, which may be
// down, does not notice. What is to be proven is in the backups' records.

const (
	// ProofsDir is where backups are restored to be proven.
	ProofsDir = "proofs"
	// ProofInterval is how often it is looked whether one may be tried again.
	ProofInterval = 15 * time.Second
	// ProofAttempts is how often a proof is tried that fails for another reason
	// than damage, ProofRetry how long after the first time; it doubles.
	ProofAttempts = 4
	ProofRetry    = time.Minute
	// proofNice is the niceness of the scratch instance.
	proofNice = 19
)

// ProveNext proves the backup that is due, if there is one now, and reports
// whether it did.
func (s *Service) ProveNext(ctx context.Context) bool {
	b, err := s.DueProof()
	if err != nil {
		s.core.Log.Error("look for backups to prove", "error", err)
	}
	if err != nil || b.ID == "" {
		return false
	}
	ctx, endDatabase := s.core.Cancels.Add(ctx, databases.VerificationClaim(b.Database))
	defer endDatabase()
	ctx, endBackup := s.core.Cancels.Add(ctx, databases.VerificationClaim(b.ID))
	defer endBackup()
	db, err := s.beginProof(b)
	if err != nil {
		return false // it is being removed
	}
	detail, err := s.Prove(ctx, db, b)
	if ctx.Err() != nil {
		err = s.UpdateBackup(b.ID, func(b *model.Backup) { b.Verification.Status = model.VerificationUnverified })
	} else {
		err = s.endProof(db, b, detail, err)
	}
	if err != nil {
		s.core.Log.Error("record the end of a proof", "backup", b.ID, "error", err)
	}
	return err == nil
}

// DueProof returns the backup whose proof comes next: the newest of a database,
// which is the one a restore would begin from, and among databases that of the
// one whose last proven backup is the oldest. So one that is backed up often
// does not keep the proofs from the others.
func (s *Service) DueProof() (due model.Backup, err error) {
	newest, proven := map[string]model.Backup{}, map[string]string{}
	err = s.core.Meta.View(func(tx *meta.Tx) error {
		return tx.Backups().All(func(b model.Backup) error {
			switch {
			case b.Status != model.BackupCompleted:
			case b.Verification.Status == model.VerificationVerified:
				proven[b.Database] = max(proven[b.Database], b.ID)
			case b.Verification.Status == model.VerificationUnverified && b.ID > newest[b.Database].ID &&
				!s.core.Clock().Before(b.Verification.NotBefore):
				if _, err := provable(tx, b); err == nil {
					newest[b.Database] = b
				}
			}
			return nil
		})
	})
	for _, b := range newest {
		if due.ID == "" || cmp.Or(cmp.Compare(proven[b.Database], proven[due.Database]), cmp.Compare(b.ID, due.ID)) < 0 {
			due = b
		}
	}
	return due, err
}

// provable returns the database of a backup, unless one of them is on its way
// out.
func provable(tx *meta.Tx, b model.Backup) (model.Database, error) {
	db, err := tx.Databases().Get(b.Database)
	if err == nil && (b.DeletionPending || db.Trash != nil || db.Status == model.DatabaseDeleting) {
		err = core.ErrUnwanted
	}
	return db, err
}

func (s *Service) beginProof(b model.Backup) (db model.Database, err error) {
	err = s.core.Meta.Update(func(tx *meta.Tx) error {
		now, err := tx.Backups().Get(b.ID)
		if err == nil {
			db, err = provable(tx, now)
		}
		if err != nil {
			return err
		}
		_, err = tx.Backups().Update(b.ID, func(b *model.Backup) error {
			b.Verification.Status = model.VerificationRunning
			return nil
		})
		return err
	})
	return db, err
}

// NoRoomError puts a proof off until there is room.
type NoRoomError struct{ Cause error }

// Error implements error.
func (e NoRoomError) Error() string { return e.Cause.Error() }

// Unwrap returns what found that there is none.
func (e NoRoomError) Unwrap() error { return e.Cause }

// Prove restores the backup, looks at it, and leaves nothing of it. It says
// what it has seen.
func (s *Service) Prove(ctx context.Context, db model.Database, b model.Backup) (detail string, err error) {
	plan, err := s.PlanEnd(ctx, b)
	if err != nil {
		return "", err
	}
	if err := s.roomForRestore(plan); err != nil {
		return "", NoRoomError{Cause: err}
	}
	dir := filepath.Join(s.core.Config.DataDir, ProofsDir, b.ID)
	if err := os.RemoveAll(dir); err != nil { // of an attempt that could not tidy up
		return "", fmt.Errorf("remove an earlier proof: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := s.unpackTimed(ctx, &plan, dir, backup.RestoreOptions{Workers: 1}); err != nil {
		return "", err
	}
	checked, err := s.proveRecovery(ctx, db, plan, dir)
	if err != nil {
		return "", err
	}
	return s.proofDetail(ctx, plan, checked, dir)
}

// endProof commits what a proof has shown, and with what is final its audit
// entry.
func (s *Service) endProof(db model.Database, b model.Backup, detail string, cause error) error {
	v := s.Verdict(b.Verification, detail, cause)
	if cause != nil {
		s.core.Log.Error("proof of a backup", "database", db.ID, "backup", b.ID, "status", v.Status, "error", cause)
	}
	if v.Status == model.VerificationFailed {
		s.core.Tell(model.Event{
			Type: model.EventProofFailed, Organization: db.Organization,
			Resource: model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name},
			Message:  fmt.Sprintf("A backup of %s could not be restored when it was tried: %s", db.Name, v.Detail),
		})
	}
	record := func(tx *meta.Tx) error {
		_, err := tx.Backups().Update(b.ID, func(b *model.Backup) error {
			b.Verification = v
			return nil
		})
		if err != nil || v.Status == model.VerificationUnverified {
			return err
		}
		call := s.core.System(model.ActionBackupProve, db.Organization, model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name})
		call.Note("verification", string(v.Status))
		call.Note("detail", v.Detail)
		return s.core.Audit(tx, call, cause)
	}
	return s.core.RecordLater(s.core.Meta.Update(record), "the end of a proof", record)
}

// Verdict is what follows from how a proof ended. Only damage condemns a backup
// at once: a machine without room or memory says nothing about it.
func (s *Service) Verdict(v model.Verification, detail string, cause error) model.Verification {
	now := s.core.Clock()
	_, noRoom := errors.AsType[NoRoomError](cause)
	switch {
	case cause == nil:
		return model.Verification{Status: model.VerificationVerified, At: &now, Detail: detail}
	case noRoom:
		v.NotBefore = now.Add(ProofRetry)
	case isDamage(cause) || v.Attempts+1 >= ProofAttempts:
		v.Status, v.At = model.VerificationFailed, &now
		v.Attempts++
	default:
		v.NotBefore = now.Add(ProofRetry << v.Attempts)
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

// SettleProofs removes what is left of a proof that was cut short, and has it
// made again.
func (s *Service) SettleProofs() error {
	root := filepath.Join(s.core.Config.DataDir, ProofsDir)
	left, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("list proofs: %w", err)
	}
	ctx, cancel := context.WithTimeout(s.core.Lifetime, s.databases.Timeouts.Stop)
	defer cancel()
	for _, entry := range left {
		dir := filepath.Join(root, entry.Name())
		if err := errors.Join(postgres.StopOrphan(ctx, dir), os.RemoveAll(dir)); err != nil {
			s.core.Log.Error("remove what an interrupted proof left", "path", dir, "error", err)
		}
	}
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		var running []string
		if err := tx.Backups().All(func(b model.Backup) error {
			if b.Verification.Status == model.VerificationRunning {
				running = append(running, b.ID)
			}
			return nil
		}); err != nil {
			return err
		}
		for _, id := range running {
			if _, err := tx.Backups().Update(id, func(b *model.Backup) error {
				b.Verification.Status = model.VerificationUnverified
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}
