package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// settle finishes or rolls back what was under way when the appliance last
// ended, so that every database is before or after each act, never between.
// It runs before anything else changes a database.
func (e *Engine) settle() error {
	databases, err := e.keptDatabases()
	if err != nil {
		return err
	}
	for _, db := range databases {
		if err := e.settleDatabase(db); err != nil {
			return fmt.Errorf("settle database %s: %w", db.ID, err)
		}
	}
	if err := e.settleBackups(); err != nil {
		return err
	}
	if err := e.settleRepositories(); err != nil {
		return err
	}
	return e.removeStrayDirectories()
}

func (e *Engine) settleDatabase(db model.Database) error {
	ctx, cancel := context.WithTimeout(e.ctx, stopTimeout)
	defer cancel()
	switch {
	case db.Status == model.DatabaseCreating:
		return e.rollBackCreate(ctx, db)
	case db.Status == model.DatabaseDeleting:
		return e.carryOnDelete(ctx, db)
	case db.Operation != "":
		return e.rollBackOperation(ctx, db)
	default:
		return nil
	}
}

// rollBackCreate removes a database that nobody was told of.
func (e *Engine) rollBackCreate(ctx context.Context, db model.Database) error {
	e.log.Warn("rolling back the creation of a database", "database", db.ID, "name", db.Name)
	if err := postgres.StopOrphan(ctx, e.dataDirectory(db.ID, db.Generation)); err != nil {
		return err
	}
	call := e.system(model.ActionDatabaseCreate, db.Organization, databaseResource(db))
	return e.forgetDatabase(ctx, call, db, errInterrupted)
}

// carryOnDelete finishes a delete.
func (e *Engine) carryOnDelete(ctx context.Context, db model.Database) error {
	e.log.Warn("carrying on with the deletion of a database", "database", db.ID, "name", db.Name)
	if err := postgres.StopOrphan(ctx, e.dataDirectory(db.ID, db.Generation)); err != nil {
		return err
	}
	call := e.system(model.ActionDatabaseDelete, db.Organization, databaseResource(db))
	_, err := e.finishDelete(ctx, call, db, db.Operation)
	return err
}

// rollBackOperation ends what ran on the database; a restore is undone.
func (e *Engine) rollBackOperation(ctx context.Context, db model.Database) error {
	var op model.DatabaseOperation
	if err := e.meta.View(func(tx *meta.Tx) (err error) {
		op, err = tx.Operations().Get(db.Operation)
		return err
	}); err != nil {
		return err
	}
	e.log.Warn("rolling back an operation", "database", db.ID, "operation", op.ID, "type", op.Type, "phase", op.Phase)
	if op.Generation != 0 {
		if err := postgres.StopOrphan(ctx, e.dataDirectory(db.ID, op.Generation)); err != nil {
			return err
		}
		if err := e.removeBuilt(db, op); err != nil {
			return err
		}
	}
	_, err := e.concludeOperation(nil, op, errInterrupted)
	return err
}

// settleBackups marks as failed what was not completed; settleRepositories
// then removes what is left of it.
func (e *Engine) settleBackups() error {
	return e.meta.Update(func(tx *meta.Tx) error {
		var unfinished []string
		if err := tx.Backups().All(func(b model.Backup) error {
			if b.Status == model.BackupPending || b.Status == model.BackupRunning {
				unfinished = append(unfinished, b.ID)
			}
			return nil
		}); err != nil {
			return err
		}
		now := e.clock()
		for _, id := range unfinished {
			if _, err := tx.Backups().Update(id, func(b *model.Backup) error {
				b.Status, b.Error, b.CompletedAt = model.BackupFailed, errInterrupted.Message, &now
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeStrayDirectories removes data directories that no record knows:
// leftovers of a crash between two steps. A record without its directory is
// reported when its instance does not start.
func (e *Engine) removeStrayDirectories() error {
	root := filepath.Join(e.cfg.DataDir, "instances")
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	for _, entry := range entries {
		db, err := e.record(entry.Name())
		if errors.Is(err, meta.ErrNotFound) {
			e.removeStray(filepath.Join(root, entry.Name()))
		} else if err == nil {
			err = e.removeStrayGenerations(db)
		}
		if err != nil && !errors.Is(err, meta.ErrNotFound) {
			return err
		}
	}
	return nil
}

func (e *Engine) removeStrayGenerations(db model.Database) error {
	entries, err := os.ReadDir(e.databaseDirectory(db.ID))
	if err != nil {
		return fmt.Errorf("list data directories: %w", err)
	}
	for _, entry := range entries {
		number, err := strconv.Atoi(entry.Name())
		if err == nil && (number == db.Generation || db.Replaced != nil && number == db.Replaced.Generation) {
			continue
		}
		e.removeStray(filepath.Join(e.databaseDirectory(db.ID), entry.Name()))
	}
	return nil
}

// removeStray removes what has no record. What cannot be removed, the
// lost+found of a file system for one, is reported and does no harm.
func (e *Engine) removeStray(path string) {
	e.log.Warn("removing what belongs to no database", "path", path)
	ctx, cancel := context.WithTimeout(e.ctx, stopTimeout)
	defer cancel()
	err := stopOrphans(ctx, path)
	if err == nil {
		err = os.RemoveAll(path)
	}
	if err != nil {
		e.log.Error("remove what belongs to no database", "path", path, "error", err)
	}
}

// stopOrphans stops whatever serves the directory path, or one in it.
func stopOrphans(ctx context.Context, path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list stray directory: %w", err)
	}
	dirs := []string{path}
	for _, entry := range entries {
		if entry.IsDir() {
			dirs = append(dirs, filepath.Join(path, entry.Name()))
		}
	}
	for _, dir := range dirs {
		if err := postgres.StopOrphan(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}
