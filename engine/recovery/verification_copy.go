package recovery

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/engine/model"
)

// VerifyCopy restores the newest backup of a database that was complete at a time on trial, from a copy of the
// directory of its backups alone. It returns model.CodeConflict if there is none.
func (s *Service) VerifyCopy(ctx context.Context, db model.Database, dir string, until time.Time) (detail string, err error) {
	backups, err := s.restorableBackups(db.ID)
	if err != nil {
		return "", err
	}
	backups = slices.DeleteFunc(backups, func(b model.Backup) bool { return b.CompletedAt.After(until) })
	if len(backups) == 0 {
		return "", model.Errorf(model.CodeConflict, "the database %s has no backup", db.Name)
	}
	files, err := openFiles(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, files.repository.Close(), files.archive.Close()) }()
	plan, err := planEnd(ctx, files.archive, backups[0])
	if err != nil {
		return "", err
	}
	plan.files = files
	return s.verifyPlan(ctx, db, plan, backups[0].ID+"_copy")
}

// openFiles opens a copy of the directory of a database's backups.
func openFiles(dir string) (*backupFiles, error) {
	r, err := repository.Open(filepath.Join(dir, "repository"))
	if err != nil {
		return nil, fmt.Errorf("open a copy: %w", err)
	}
	archive, err := wal.Open(filepath.Join(dir, WALDirectory), wal.Options{})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a copy: %w", err), r.Close())
	}
	return &backupFiles{r, archive}, nil
}
