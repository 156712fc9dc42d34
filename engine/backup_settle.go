package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"holdfast/backup/repository"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// settleRepositories brings each database's backups and their records in step.
// It runs before anybody can begin another.
func (e *Engine) settleRepositories() error {
	root := filepath.Join(e.cfg.DataDir, "backups")
	databases, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("list backups: %w", err)
	}
	for _, entry := range databases {
		db, err := e.record(entry.Name())
		if errors.Is(err, meta.ErrNotFound) {
			e.tryClearAway(filepath.Join(root, entry.Name()), entry.Name()+"-backups", false)
			continue
		}
		if err == nil {
			err = errors.Join(e.settleRepository(db), e.measureArchived(db.ID))
		}
		if err != nil { // that keeps no database from starting
			e.log.Error("settle backups", "database", entry.Name(), "error", err)
		}
	}
	return nil
}

// settleRepository finishes what was cut short. Where that cannot be done for
// all that is stored, its WAL is kept: nobody knows what needs it.
func (e *Engine) settleRepository(db model.Database) error {
	repo, dropped, err := e.settleStored(db)
	if err != nil {
		e.archives.get(db.ID).keepWAL()
		return err
	}
	return e.cleanRepository(db.ID, repo, dropped)
}

// settleStored brings what is stored and its records in step: a delete is
// carried on; a backup whose manifest is there is complete, whatever its record
// says, and one without a record, because an older holdfast.db was brought back,
// gets one. What is wrong with one backup keeps none of the others from that.
func (e *Engine) settleStored(db model.Database) (repo *repository.Repository, dropped bool, err error) {
	if repo, err = e.repository(db.ID); err != nil {
		return nil, false, err
	}
	stored, err := repo.Backups()
	if err != nil {
		return nil, false, err
	}
	records, err := e.backupRecords(db.ID)
	if err != nil {
		return nil, false, err
	}
	var errs []error
	for _, id := range stored {
		b, known := records[id]
		switch {
		case known && b.Status == model.BackupFailed:
			errs = append(errs, e.dropStored(db.ID, id))
			dropped = true
		case !known || b.Status != model.BackupCompleted:
			errs = append(errs, e.adoptBackup(db, repo, id, known))
		}
	}
	for id, b := range records {
		switch {
		case b.Condemned:
			errs = append(errs, e.dropBackup(db.ID, id))
			dropped = true
		case b.Status == model.BackupCompleted && !slices.Contains(stored, id):
			e.log.Error("a backup's manifest is missing: it cannot be restored", "database", db.ID, "backup", id)
		}
	}
	return repo, dropped, errors.Join(errs...)
}

// cleanRepository removes leftovers, and the chunks that no backup needs any
// more.
func (e *Engine) cleanRepository(database string, repo *repository.Repository, dropped bool) error {
	leftovers, err := repo.Clean()
	for _, name := range leftovers {
		e.log.Warn("removed what an interrupted backup left", "database", database, "file", name)
	}
	if err != nil {
		return err
	}
	if !dropped && len(leftovers) == 0 {
		return nil
	}
	_, err = repo.Collect(e.ctx)
	return err
}

// adoptBackup gives a backup that is complete the record it should have. One
// that is known, and damaged itself, has failed.
func (e *Engine) adoptBackup(db model.Database, repo *repository.Repository, id string, known bool) error {
	m, digest, err := repo.Manifest(id)
	if known && errors.Is(err, repository.ErrDamaged) {
		now := e.clock()
		return errors.Join(err, e.updateBackup(id, func(b *model.Backup) {
			b.Status, b.Error, b.CompletedAt = model.BackupFailed, operationMessage(err), &now
		}))
	}
	if err != nil {
		return err
	}
	e.log.Warn("a backup is complete, and its record did not say so", "database", db.ID, "backup", id)
	return e.meta.Update(func(tx *meta.Tx) error {
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
		completed := endAsRecorded(m.Backup.CompletedAt)
		b.StoredBytes = m.Backup.StoredBytes + m.StoredSize
		b.ManifestBLAKE3, b.CompletedAt = digest, &completed
		b.WholeRead = m.Backup.WholeRead
		if absent {
			return tx.Backups().Insert(b)
		}
		_, err = tx.Backups().Update(id, func(r *model.Backup) error {
			*r = b
			return nil
		})
		return err
	})
}

// adoptedType reads the type out of a manifest. Manifests of earlier versions
// have none; their backups count as made by hand.
func adoptedType(text string) model.BackupType {
	if t := model.BackupType(text); t == model.BackupScheduled {
		return t
	}
	return model.BackupManual
}

// backupRecords returns the records of a database's backups by their ids.
func (e *Engine) backupRecords(database string) (map[string]model.Backup, error) {
	records := map[string]model.Backup{}
	err := e.meta.View(func(tx *meta.Tx) error {
		all, err := allUnder(tx.Backups(), database)
		for _, b := range all {
			records[b.ID] = b
		}
		return err
	})
	return records, err
}

// collectBackups gives back the room that no backup of the database needs any
// more, and its WAL. What is left of it when that is cut short, the next one
// finds.
func (e *Engine) collectBackups(ctx context.Context, database string) {
	e.collectChunks(ctx, database)
	if err := e.pruneWAL(database); err != nil {
		e.log.Error("prune WAL", "database", database, "error", err)
	}
}

func (e *Engine) collectChunks(ctx context.Context, database string) {
	repo, err := e.repository(database)
	if err == nil {
		_, err = repo.Collect(ctx)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, repository.ErrBusy) {
		e.log.Error("collect what backups left", "database", database, "error", err)
	}
}
