package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"holdfast/backup/repository"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// A database's backups lie in a directory of their own, outside its instance:
// repository/ holds the chunks, wal/ what they need of the WAL. It is made by
// the first backup, stays in the trash with the database, and goes with it.

func (e *Engine) backupDirectory(database string) string {
	return filepath.Join(e.cfg.DataDir, "backups", database)
}

// repositories are those that are open; each is, from its first use until its
// database or the engine ends.
type repositories struct {
	mu   sync.Mutex
	open map[string]*repository.Repository
}

func newRepositories() *repositories {
	return &repositories{open: map[string]*repository.Repository{}}
}

// get returns the repository in dir, that of the database.
func (r *repositories) get(database, dir string) (*repository.Repository, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if repo := r.open[database]; repo != nil {
		return repo, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of backups: %w", err)
	}
	repo, err := repository.Open(filepath.Join(dir, "repository"))
	if err != nil {
		return nil, err
	}
	r.open[database] = repo
	return repo, nil
}

// close closes a database's repository, if it is open. Nobody uses it.
func (r *repositories) close(database string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	repo := r.open[database]
	delete(r.open, database)
	if repo == nil {
		return nil
	}
	return repo.Close()
}

func (r *repositories) closeAll() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for database, repo := range r.open {
		errs = append(errs, repo.Close())
		delete(r.open, database)
	}
	return errors.Join(errs...)
}

// repository returns the repository of a database's backups.
func (e *Engine) repository(database string) (*repository.Repository, error) {
	return e.repositories.get(database, e.backupDirectory(database))
}

// removeBackups removes all of a database's backups.
func (e *Engine) removeBackups(database string) error {
	if err := e.repositories.close(database); err != nil {
		return err
	}
	if err := os.RemoveAll(e.backupDirectory(database)); err != nil {
		return fmt.Errorf("remove backups: %w", err)
	}
	return nil
}

// settleRepositories removes, of each database's backups, what no completed
// record knows: what an interrupted backup left, or a delete that was cut
// short. It runs before anybody can begin another.
func (e *Engine) settleRepositories() error {
	databases, err := os.ReadDir(filepath.Join(e.cfg.DataDir, "backups"))
	if err != nil {
		return fmt.Errorf("list backups: %w", err)
	}
	for _, entry := range databases {
		if _, err := e.record(entry.Name()); errors.Is(err, meta.ErrNotFound) {
			e.removeStray(e.backupDirectory(entry.Name()))
			continue
		}
		// One that cannot be opened keeps no database from starting.
		if err := e.settleRepository(entry.Name()); err != nil {
			e.log.Error("settle backups", "database", entry.Name(), "error", err)
		}
	}
	return nil
}

func (e *Engine) settleRepository(database string) error {
	completed, err := e.completedBackups(database)
	if err != nil {
		return err
	}
	repo, err := e.repository(database)
	if err != nil {
		return err
	}
	stored, err := repo.Backups()
	if err != nil {
		return err
	}
	stray := 0
	for _, id := range stored {
		if !completed[id] {
			e.log.Warn("removing a backup that belongs to no record", "database", database, "backup", id)
			if err := repo.Delete(id); err != nil {
				return err
			}
			stray++
		}
		delete(completed, id)
	}
	for id := range completed {
		e.log.Error("a backup's manifest is missing: it cannot be restored", "database", database, "backup", id)
	}
	return e.cleanRepository(database, repo, stray)
}

// cleanRepository removes leftovers, and the chunks of stray backups.
func (e *Engine) cleanRepository(database string, repo *repository.Repository, stray int) error {
	leftovers, err := repo.Clean()
	for _, name := range leftovers {
		e.log.Warn("removed what an interrupted backup left", "database", database, "file", name)
	}
	if err != nil {
		return err
	}
	if err := e.removeStrayWAL(database); err != nil {
		return err
	}
	if stray == 0 && len(leftovers) == 0 {
		return nil
	}
	_, err = repo.Collect(e.ctx)
	return err
}

// completedBackups returns the ids of a database's completed backups.
func (e *Engine) completedBackups(database string) (map[string]bool, error) {
	completed := map[string]bool{}
	err := e.meta.View(func(tx *meta.Tx) error {
		all, err := allUnder(tx.Backups(), database)
		for _, b := range all {
			if b.Status == model.BackupCompleted {
				completed[b.ID] = true
			}
		}
		return err
	})
	return completed, err
}

// collectBackups gives back the room that no backup of the database needs any
// more. What is left of it when that is cut short, the next one finds.
func (e *Engine) collectBackups(ctx context.Context, database string) {
	repo, err := e.repository(database)
	if err == nil {
		_, err = repo.Collect(ctx)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, repository.ErrBusy) {
		e.log.Error("collect what backups left", "database", database, "error", err)
	}
}
