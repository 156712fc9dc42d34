package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/move"
	"holdfast/internal/durable"
)

// importDir is the directory below the new data directory into which an appliance
// is unpacked. While it exists without the metadata beside it, the rest of the data directory is incomplete.
const importDir = "arriving"

// finishImport completes an import that was interrupted after its last file was in place, and refuses a data directory
// with one that was interrupted before.
func finishImport(dir string) error {
	if core.Absent(dir, importDir) {
		return nil
	}
	if core.Absent(dir, core.MetadataFile) {
		return fmt.Errorf("the data directory %s holds an incomplete import of an appliance: run `holdfast admin import-all` again", dir)
	}
	if err := os.Remove(filepath.Join(dir, importDir)); err != nil {
		return fmt.Errorf("the data directory %s holds an appliance, and in %s the files of another import: move those away: %w", dir, importDir, err)
	}
	return durable.SyncDir(durable.OS{}, dir)
}

// ApplianceImport turns the empty directory dir into the data directory of the appliance in the archive r. The import
// takes effect once the archive is completely read, verified and durable; the metadata come last. An interrupted import
// can be started again over its remains.
func ApplianceImport(dir string, r io.Reader) (m move.Manifest, err error) {
	unlock, err := lockDirectory(dir)
	if errors.Is(err, meta.ErrLocked) {
		return m, &model.Error{Code: model.CodeConflict, Message: fmt.Sprintf("%s is in use by another holdfast: an appliance can only be moved into an empty directory", dir), Err: err}
	}
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := prepareImport(dir); err != nil {
		return m, err
	}
	unpacked := filepath.Join(dir, importDir)
	m, err = move.Read(r, unpacked)
	if err == nil {
		err = reconcileImport(unpacked)
	}
	if err == nil {
		err = durable.SyncTree(unpacked)
	}
	if err != nil {
		return m, errors.Join(err, os.RemoveAll(unpacked))
	}
	return m, publishImport(dir, unpacked)
}

// prepareImport checks that dir is empty and clears what an interrupted import left. With metadata, the directory is that
// of an appliance, and nothing of it is cleared.
func prepareImport(dir string) error {
	if !core.Absent(dir, core.MetadataFile) {
		return errors.Join(finishImport(dir), model.Errorf(model.CodeConflict,
			"the data directory %s is not empty: it holds an appliance, which `holdfast serve` starts, and another one can only be moved into an empty one", dir))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if len(entries) > 0 && core.Absent(dir, importDir) {
		return model.Errorf(model.CodeConflict, "the data directory %s is not empty: an appliance can only be moved into an empty one", dir)
	}
	for _, entry := range entries { // an interrupted import left them: the directory was empty before it
		if entry.Name() != importDir {
			if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	unpacked := filepath.Join(dir, importDir)
	if err := errors.Join(os.RemoveAll(unpacked), os.Mkdir(unpacked, 0o700)); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return durable.SyncDir(durable.OS{}, dir)
}

// reconcileImport marks the databases that arrived as backups for a rebuild, and drops references to replaced data,
// which an archive does not contain.
func reconcileImport(dir string) error {
	for _, name := range []string{core.MetadataFile, core.KeyFile} {
		if core.Absent(dir, name) {
			return fmt.Errorf("%w: it has no %s", move.ErrDamaged, name)
		}
	}
	db, err := meta.Open(filepath.Join(dir, core.MetadataFile))
	if err != nil {
		return err
	}
	_, err = databases.MarkForRebuild(db, dir)
	return errors.Join(err, db.Close())
}

// publishImport moves everything to its place, the metadata last, and removes the
// directory arriving, which completes the import.
func publishImport(dir, unpacked string) error {
	entries, err := os.ReadDir(unpacked)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == core.MetadataFile {
			continue
		}
		if err := os.Rename(filepath.Join(unpacked, entry.Name()), filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	if err := durable.SyncDir(durable.OS{}, dir); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(unpacked, core.MetadataFile), filepath.Join(dir, core.MetadataFile)); err != nil {
		return err
	}
	return errors.Join(durable.SyncDir(durable.OS{}, dir), os.Remove(unpacked), durable.SyncDir(durable.OS{}, dir))
}
