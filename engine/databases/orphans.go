package databases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// removingSuffix marks a directory that is being removed: whatever is left of
// it may go.
const removingSuffix = ".removing"

// RemoveDirectory removes a data directory that no record names any more. Its
// name goes first, so that the next start knows what a crash leaves of it.
func RemoveDirectory(dir string) error {
	err := os.Rename(dir, dir+removingSuffix)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir + removingSuffix)
}

// QuarantineOrphans moves data directories that no record knows out of the way
// of new ones. A record without its directory is reported when its instance
// does not start.
func (s *Service) QuarantineOrphans() error {
	root := filepath.Join(s.core.Config.DataDir, "instances")
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	for _, entry := range entries {
		db, err := s.Record(entry.Name())
		if errors.Is(err, meta.ErrNotFound) {
			s.TryClearOrphan(filepath.Join(root, entry.Name()), entry.Name(), false)
		} else if err == nil && !s.core.Claims.Holds(db.ID, core.Unsettled) {
			err = s.quarantineGenerations(db)
		}
		if err != nil && !errors.Is(err, meta.ErrNotFound) { // that keeps no database from starting
			s.core.Log.Error("put aside what belongs to no database", "database", entry.Name(), "error", err)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(s.core.Config.DataDir, core.StraysDir)); len(left) > 0 {
		s.core.Log.Warn("there are data directories that belong to no database: remove them once nothing in them is missed",
			"count", len(left), "path", filepath.Join(s.core.Config.DataDir, core.StraysDir))
	}
	return nil
}

// quarantineGenerations leaves a database the data directories it has. Earlier
// ones, which a crash kept the last restore from removing, are removed; of any
// other the record knows nothing, and it is put aside.
func (s *Service) quarantineGenerations(db model.Database) error {
	entries, err := os.ReadDir(s.DatabaseDirectory(db.ID))
	if err != nil {
		return fmt.Errorf("list data directories: %w", err)
	}
	for _, entry := range entries {
		number, err := strconv.Atoi(entry.Name())
		if err == nil && (number == db.Generation || db.Replaced != nil && number == db.Replaced.Generation) {
			continue
		}
		replaced := err == nil && number <= db.LastGeneration() && !s.OlderMetadata
		s.TryClearOrphan(filepath.Join(s.DatabaseDirectory(db.ID), entry.Name()), db.ID+"-"+entry.Name(), replaced)
	}
	return nil
}

// TryClearOrphan is clearOrphan, and reports what cannot be cleared away, the
// lost+found of a file system for one: that does no harm.
func (s *Service) TryClearOrphan(path, name string, replaced bool) {
	if err := s.clearOrphan(path, name, replaced); err != nil {
		s.core.Log.Error("clear away what belongs to no database", "path", path, "error", err)
	}
}

// clearOrphan removes a data directory that was replaced, finishes the removal
// of one, and moves any other to StraysDir.
func (s *Service) clearOrphan(path, name string, replaced bool) error {
	ctx, cancel := context.WithTimeout(s.core.Lifetime, s.Timeouts.Stop)
	defer cancel()
	if err := stopOrphans(ctx, path); err != nil {
		return err
	}
	if replaced || strings.HasSuffix(name, removingSuffix) {
		return os.RemoveAll(path)
	}
	return s.quarantine(path, name)
}

func (s *Service) quarantine(path, name string) error {
	strays := filepath.Join(s.core.Config.DataDir, core.StraysDir)
	if err := os.MkdirAll(strays, 0o700); err != nil {
		return err
	}
	to := filepath.Join(strays, s.core.Clock().Format("20060102T150405.000Z")+"-"+name)
	s.core.Log.Warn("putting aside what belongs to no database", "path", path, "to", to)
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

// Discard removes what was begun for a database and did not come to be; with
// older metadata, by which that is not sure, it is put aside.
func (s *Service) Discard(path, name string) error {
	if !s.OlderMetadata {
		return os.RemoveAll(path)
	}
	if _, err := os.Lstat(path); err != nil {
		return nil
	}
	return s.clearOrphan(path, name, false)
}
