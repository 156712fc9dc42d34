package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/engine/model"
)

// VerifyCopy restores the newest backup of a database that a copy of the directory of its backups has on trial, from that
// copy alone. A backup that was completed while the copy was made need not be there. It returns model.CodeConflict if the copy
// has none.
func (s *Service) VerifyCopy(ctx context.Context, db model.Database, dir string) (detail string, err error) {
	backups, err := s.restorableBackups(db.ID)
	if err != nil {
		return "", err
	}
	none := model.Errorf(model.CodeConflict, "the copy has no backup of the database %s", db.Name)
	files, err := openFiles(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", none
	case err != nil:
		return "", err
	}
	defer func() { err = errors.Join(err, files.repository.Close(), files.archive.Close()) }()
	copied, err := files.repository.Backups()
	if err != nil {
		return "", err
	}
	backups = slices.DeleteFunc(backups, func(b model.Backup) bool { return !slices.Contains(copied, b.ID) })
	if len(backups) == 0 {
		return "", none
	}
	plan, err := planEnd(ctx, files.archive, backups[0])
	if err != nil {
		return "", err
	}
	plan.files = files
	return s.verifyPlan(ctx, db, plan, backups[0].ID+"_copy")
}

// openFiles opens a copy of the directory of a database's backups. It returns [fs.ErrNotExist] if the copy has no repository.
func openFiles(dir string) (*backupFiles, error) {
	path := filepath.Join(dir, "repository")
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open a copy: %w", err)
	}
	r, err := repository.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a copy: %w", err)
	}
	archive, err := wal.Open(filepath.Join(dir, WALDirectory), wal.Options{})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a copy: %w", err), r.Close())
	}
	return &backupFiles{r, archive}, nil
}
