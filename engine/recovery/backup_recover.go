package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"holdfast/backup/repository"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// ReconcileRepositories reconciles the stored backups of each database with their records. It runs before any backup
// starts.
func (s *Service) ReconcileRepositories() error {
	root := filepath.Join(s.core.Config.DataDir, "backups")
	databases, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("list backups: %w", err)
	}
	for _, entry := range databases {
		db, err := s.databases.Record(entry.Name())
		if errors.Is(err, meta.ErrNotFound) {
			s.databases.TryClearOrphan(filepath.Join(root, entry.Name()), entry.Name()+"-backups", false)
			continue
		}
		if err == nil && !s.isAway(db.ID) {
			err = s.reconcileRepository(db)
		}
		if err != nil { // the database starts anyway
			s.core.Log.Error("reconcile backups", "database", entry.Name(), "error", err)
		}
	}
	return nil
}

// reconcileRepository finishes interrupted changes to a repository. If that fails for any backup, all WAL is kept,
// because it is unknown which WAL is needed.
func (s *Service) reconcileRepository(db model.Database) error {
	repo, dropped, err := s.reconcileStored(db)
	if err != nil {
		s.archives.get(db.ID).keepsWAL.Store(true)
		return err
	}
	return s.cleanRepository(db.ID, repo, dropped)
}

// reconcileStored reconciles stored backups with records. It finishes pending deletions. A backup with a manifest is
// complete, whatever its record says; one without a record, because an older holdfast.db was restored, gets one. A
// completed backup without a manifest counts as damaged. An error in one backup does not stop it from reconciling the others.
func (s *Service) reconcileStored(db model.Database) (repo *repository.Repository, dropped bool, err error) {
	if repo, err = s.Repository(db.ID); err != nil {
		return nil, false, err
	}
	stored, err := repo.Backups()
	if err != nil {
		return nil, false, err
	}
	records, err := s.backupRecords(db.ID)
	if err != nil {
		return nil, false, err
	}
	var errs []error
	for _, id := range stored {
		b, known := records[id]
		switch {
		case known && b.Status == model.BackupFailed:
			errs = append(errs, s.dropStored(db.ID, id))
			dropped = true
		case !known || b.Status != model.BackupCompleted:
			errs = append(errs, s.adoptBackup(db, repo, id, known))
		}
	}
	for id, b := range records {
		switch {
		case b.DeletionPending:
			errs = append(errs, s.dropBackup(db.ID, id))
			dropped = true
		case b.Status == model.BackupCompleted && !slices.Contains(stored, id):
			s.core.Log.Error("a backup's manifest is missing: it cannot be restored", "database", db.ID, "backup", id)
			if verificationRank(b) == 0 {
				s.noteDamaged(b, errNoManifest)
			}
		}
	}
	return repo, dropped, errors.Join(errs...)
}

// cleanRepository removes leftovers and the chunks that no backup needs, unless a manifest is missing.
func (s *Service) cleanRepository(database string, repo *repository.Repository, dropped bool) error {
	if lost, err := s.lostManifests(database, repo); err != nil || len(lost) > 0 {
		return err // reconcileStored has logged them
	}
	if err := s.core.Meta.Durable(); err != nil { // what the records said
		return err
	}
	leftovers, err := repo.Clean()
	for _, name := range leftovers {
		s.core.Log.Warn("removed what an interrupted backup left", "database", database, "file", name)
	}
	if err != nil {
		return err
	}
	if !dropped && len(leftovers) == 0 {
		return nil
	}
	_, err = repo.Collect(s.core.Lifetime)
	return err
}

// lostManifests returns the completed backups whose manifests are missing. What they need is unknown, so nothing is removed for being
// unneeded until they are back or the backups are removed.
func (s *Service) lostManifests(database string, repo *repository.Repository) (lost []string, err error) {
	before, err := s.restorableBackups(database)
	if err != nil {
		return nil, err
	}
	stored, err := repo.Backups()
	if err != nil {
		return nil, err
	}
	after, err := s.restorableBackups(database) // without those that were removed meanwhile
	for _, b := range after {
		known := func(old model.Backup) bool { return old.ID == b.ID }
		if slices.ContainsFunc(before, known) && !slices.Contains(stored, b.ID) {
			lost = append(lost, b.ID)
		}
	}
	return lost, err
}

// adoptBackup records a backup as completed from its manifest. A backup that has
// a record but a damaged manifest is recorded as failed.
func (s *Service) adoptBackup(db model.Database, repo *repository.Repository, id string, known bool) error {
	m, digest, err := repo.Manifest(id)
	if known && errors.Is(err, repository.ErrDamaged) {
		now := s.core.Clock()
		return errors.Join(err, s.UpdateBackup(id, func(b *model.Backup) {
			b.Status, b.Error, b.CompletedAt = model.BackupFailed, databases.OperationMessage(err), &now
		}))
	}
	if err != nil {
		return err
	}
	s.core.Log.Warn("a backup is complete, and its record did not say so", "database", db.ID, "backup", id)
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		b, err := tx.Backups().Get(id)
		absent := errors.Is(err, meta.ErrNotFound)
		if absent {
			b, err = model.Backup{
				ID: id, Organization: db.Organization, Database: db.ID, Type: adoptedType(m.Backup.Type), StartedAt: m.Backup.StartedAt,
			}, nil
			b.Verification.Status = model.VerificationUnverified
		}
		if err != nil {
			return err
		}
		b.Status, b.Progress, b.Error = model.BackupCompleted, 100, ""
		b.Version, b.Timeline, b.Generation = m.Backup.PostgresVersion, int(m.Backup.Timeline), m.Backup.Generation
		b.StartLSN, b.StopLSN, b.SizeBytes = m.Backup.StartLSN, m.Backup.StopLSN, m.Backup.SizeBytes
		completed := roundUpEnd(m.Backup.CompletedAt)
		b.StoredBytes = m.Backup.StoredBytes + m.StoredSize
		b.ManifestBLAKE3, b.CompletedAt = digest, &completed
		b.WholeRead = m.Backup.WholeRead
		if absent {
			return tx.Backups().Insert(b)
		}
		return tx.Backups().Change(id, func(r *model.Backup) { *r = b })
	})
}

// adoptedType reads the type from a manifest. Manifests of earlier versions have
// none; their backups count as manual.
func adoptedType(text string) model.BackupType {
	if t := model.BackupType(text); t == model.BackupScheduled {
		return t
	}
	return model.BackupManual
}

// backupRecords returns the records of a database's backups by their ids.
func (s *Service) backupRecords(database string) (map[string]model.Backup, error) {
	all, err := s.backupsOf(database)
	records := map[string]model.Backup{}
	for _, b := range all {
		records[b.ID] = b
	}
	return records, err
}

// backupsOf returns the records of a database's backups, newest first.
func (s *Service) backupsOf(database string) ([]model.Backup, error) {
	return meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Backup, error) { return core.AllUnder(tx.Backups(), database) })
}

// CollectBackups removes the chunks and the WAL that no backup of the database
// needs. If it is interrupted, the next call removes the rest.
func (s *Service) CollectBackups(ctx context.Context, database string) {
	s.collectChunks(ctx, database)
	if err := s.PruneWAL(database); err != nil {
		s.core.Log.Error("prune WAL", "database", database, "error", err)
	}
}

func (s *Service) collectChunks(ctx context.Context, database string) {
	repo, err := s.Repository(database)
	var lost []string
	if err == nil {
		lost, err = s.lostManifests(database, repo)
	}
	if len(lost) > 0 {
		err = fmt.Errorf("the manifests of the backups %q are missing, so what they need is unknown: bring them back, or remove the backups", lost)
	}
	if err == nil {
		err = s.core.Meta.Durable() // what the records said
	}
	if err == nil {
		_, err = repo.Collect(ctx)
		s.archives.changed(database)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, repository.ErrBusy) {
		s.core.Log.Error("collect unused chunks", "database", database, "error", err)
	}
}

// RecoverBackups marks interrupted backups as failed, of all databases or of one. A backup that may be
// complete but whose repository cannot be read is left for the next start.
func (s *Service) RecoverBackups(database string) error {
	interrupted, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Backup, error) {
		return tx.Backups().Where(func(b model.Backup) bool {
			return (b.Status == model.BackupPending || b.Status == model.BackupRunning) && (database == "" || database == b.Database)
		})
	})
	if err != nil {
		return err
	}
	interrupted = slices.DeleteFunc(interrupted, s.mayBeComplete)
	now := s.core.Clock()
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		for _, b := range interrupted {
			if err := tx.Backups().Change(b.ID, func(b *model.Backup) {
				b.Status, b.Error, b.Cut, b.CompletedAt = model.BackupFailed, core.ErrInterrupted.Message, true, &now
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// mayBeComplete reports whether a backup's manifest exists, or its repository cannot be read.
func (s *Service) mayBeComplete(b model.Backup) bool {
	if s.isAway(b.Database) {
		return true
	}
	repo, err := s.Repository(b.Database)
	if err != nil {
		return true
	}
	stored, err := repo.Backups()
	return err != nil || slices.Contains(stored, b.ID)
}
