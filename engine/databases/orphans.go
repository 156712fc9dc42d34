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
	"holdfast/internal/durable"
)

// removingSuffix marks a directory that is being removed.
const removingSuffix = ".removing"

// RemoveDirectory removes a data directory that no record refers to any more. It
// renames the directory first, so that after a crash the next start removes the
// rest.
func RemoveDirectory(dir string) error {
	err := os.Rename(dir, dir+removingSuffix)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir + removingSuffix)
}

// QuarantineOrphans moves orphans, data directories without a record that are not
// warm servers, out of the way of new ones. A record without a directory is reported when its instance fails
// to start.
func (s *Service) QuarantineOrphans() error {
	if err := s.recoverWarm(); err != nil {
		return err
	}
	root := filepath.Join(s.core.Config.DataDir, "instances")
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	for _, entry := range entries {
		if s.warm.knows(entry.Name()) {
			continue
		}
		db, err := s.Record(entry.Name())
		if errors.Is(err, meta.ErrNotFound) {
			s.TryClearOrphan(filepath.Join(root, entry.Name()), entry.Name(), false)
		} else if err == nil && !s.core.Claims.Holds(db.ID, core.Unrecovered) {
			err = s.quarantineGenerations(db)
		}
		if err != nil && !errors.Is(err, meta.ErrNotFound) { // the databases can start nevertheless
			s.core.Log.Error("move orphans to quarantine", "database", entry.Name(), "error", err)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(s.core.Config.DataDir, core.QuarantineDir)); len(left) > 0 {
		s.core.Log.Warn("there are orphaned data directories in quarantine: remove them once you are sure that nothing in them is needed",
			"count", len(left), "path", filepath.Join(s.core.Config.DataDir, core.QuarantineDir))
	}
	return nil
}

// quarantineGenerations keeps the data directories that a record refers to. It
// removes earlier ones, which the last restore could not remove because of a
// crash, and quarantines all others.
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

// TryClearOrphan is clearOrphan, but only logs a failure: a path that cannot be
// moved, such as a file system's lost+found directory, does no harm.
func (s *Service) TryClearOrphan(path, name string, replaced bool) {
	if err := s.clearOrphan(path, name, replaced); err != nil {
		s.core.Log.Error("clear an orphaned directory", "path", path, "error", err)
	}
}

// clearOrphan removes a data directory that was replaced or whose removal was
// interrupted, and a temporary file, and quarantines any other.
func (s *Service) clearOrphan(path, name string, replaced bool) error {
	ctx, cancel := context.WithTimeout(s.core.Lifetime, s.Timeouts.Stop)
	defer cancel()
	if err := stopOrphans(ctx, path); err != nil {
		return err
	}
	if replaced || strings.HasSuffix(name, removingSuffix) || strings.HasSuffix(name, durable.NewSuffix) {
		return os.RemoveAll(path)
	}
	return s.quarantine(path, name)
}

// quarantine moves a path to the quarantine directory.
func (s *Service) quarantine(path, name string) error {
	quarantine := filepath.Join(s.core.Config.DataDir, core.QuarantineDir)
	if err := os.MkdirAll(quarantine, 0o700); err != nil {
		return err
	}
	to := filepath.Join(quarantine, s.core.Clock().Format("20060102T150405.000Z")+"-"+name)
	s.core.Log.Warn("moving an orphaned directory to quarantine", "path", path, "to", to)
	return os.Rename(path, to)
}

// stopOrphans stops the servers of a directory and of its subdirectories.
func stopOrphans(ctx context.Context, path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list orphaned directory: %w", err)
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

// Discard removes the directory of a database that was not completed. Older
// metadata may not show that it was, so Discard then quarantines the directory.
func (s *Service) Discard(path, name string) error {
	if !s.OlderMetadata {
		return os.RemoveAll(path)
	}
	if _, err := os.Lstat(path); err != nil {
		return nil
	}
	return s.clearOrphan(path, name, false)
}
