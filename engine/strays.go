package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// straysDir is where data directories lie that no record knows. No crash
// leaves any, but an older holdfast.db brought back does: the databases made
// since are not in it, and their files are the only copy.
const straysDir = "strays"

// removingSuffix marks a directory that is being removed: whatever is left of
// it may go.
const removingSuffix = ".removing"

// removeDirectory removes a data directory that no record names any more. Its
// name goes first, so that the next start knows what a crash leaves of it.
func removeDirectory(dir string) error {
	err := os.Rename(dir, dir+removingSuffix)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir + removingSuffix)
}

// putStraysAside moves data directories that no record knows out of the way
// of new ones. A record without its directory is reported when its instance
// does not start.
func (e *Engine) putStraysAside() error {
	root := filepath.Join(e.cfg.DataDir, "instances")
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	for _, entry := range entries {
		db, err := e.record(entry.Name())
		if errors.Is(err, meta.ErrNotFound) {
			e.tryClearAway(filepath.Join(root, entry.Name()), entry.Name(), false)
		} else if err == nil && !e.claims.holds(db.ID, unsettled) {
			err = e.putGenerationsAside(db)
		}
		if err != nil && !errors.Is(err, meta.ErrNotFound) { // that keeps no database from starting
			e.log.Error("put aside what belongs to no database", "database", entry.Name(), "error", err)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(e.cfg.DataDir, straysDir)); len(left) > 0 {
		e.log.Warn("there are data directories that belong to no database: remove them once nothing in them is missed",
			"count", len(left), "path", filepath.Join(e.cfg.DataDir, straysDir))
	}
	return nil
}

// putGenerationsAside leaves a database the data directories it has. Earlier
// ones, which a crash kept the last restore from removing, are removed; of any
// other the record knows nothing, and it is put aside.
func (e *Engine) putGenerationsAside(db model.Database) error {
	entries, err := os.ReadDir(e.databaseDirectory(db.ID))
	if err != nil {
		return fmt.Errorf("list data directories: %w", err)
	}
	for _, entry := range entries {
		number, err := strconv.Atoi(entry.Name())
		if err == nil && (number == db.Generation || db.Replaced != nil && number == db.Replaced.Generation) {
			continue
		}
		replaced := err == nil && number <= db.LastGeneration() && !e.older
		e.tryClearAway(filepath.Join(e.databaseDirectory(db.ID), entry.Name()), db.ID+"-"+entry.Name(), replaced)
	}
	return nil
}

// tryClearAway is clearAway, and reports what cannot be cleared away, the
// lost+found of a file system for one: that does no harm.
func (e *Engine) tryClearAway(path, name string, replaced bool) {
	if err := e.clearAway(path, name, replaced); err != nil {
		e.log.Error("clear away what belongs to no database", "path", path, "error", err)
	}
}

// clearAway removes a data directory that was replaced, finishes the removal
// of one, and moves any other to straysDir.
func (e *Engine) clearAway(path, name string, replaced bool) error {
	ctx, cancel := context.WithTimeout(e.ctx, e.waits.stop)
	defer cancel()
	if err := stopOrphans(ctx, path); err != nil {
		return err
	}
	if replaced || strings.HasSuffix(name, removingSuffix) {
		return os.RemoveAll(path)
	}
	return e.moveToStrays(path, name)
}

func (e *Engine) moveToStrays(path, name string) error {
	strays := filepath.Join(e.cfg.DataDir, straysDir)
	if err := os.MkdirAll(strays, 0o700); err != nil {
		return err
	}
	to := filepath.Join(strays, e.clock().Format("20060102T150405.000Z")+"-"+name)
	e.log.Warn("putting aside what belongs to no database", "path", path, "to", to)
	return os.Rename(path, to)
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
