package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/publish"
)

const (
	// metadataBackups is where copies of the metadata lie.
	metadataBackups = "metadata"
	// metadataInterval is how often a copy is made by itself, metadataKept how
	// many are kept.
	metadataInterval = 24 * time.Hour
	metadataKept     = 14
	// metadataTime is the time in a copy's name, which sorts by it.
	metadataTime = "20060102T150405Z"
)

// MetadataBackup is a copy of the metadata.
type MetadataBackup struct {
	Path      string
	SizeBytes int64
}

// MetadataBackup copies the metadata, as it is at one moment and while
// everything goes on, and checks the copy. The key its secrets are sealed with
// is another file, and is not in it.
func (e *Engine) MetadataBackup(call *model.Call) (MetadataBackup, error) {
	release, err := e.claims.take(metadataFile, "a copy of the metadata")
	if err != nil {
		return MetadataBackup{}, err
	}
	defer release()
	dir := filepath.Join(e.cfg.DataDir, metadataBackups)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return MetadataBackup{}, noRoom(fmt.Errorf("make directory: %w", err))
	}
	path := filepath.Join(dir, metadataCopy(e.clock()))
	if err := publish.Stream(path, 0o600, e.meta.Snapshot); err != nil {
		return MetadataBackup{}, noRoom(err)
	}
	if err := meta.Check(path); err != nil { // it may not stand for a good one
		return MetadataBackup{}, errors.Join(err, os.Remove(path))
	}
	info, err := os.Stat(path)
	if err != nil {
		return MetadataBackup{}, fmt.Errorf("look at the copy: %w", err)
	}
	call.Note("path", path)
	return MetadataBackup{path, info.Size()}, e.change(call, func(*meta.Tx) error { return nil })
}

// backUpMetadata makes a copy when the newest is old, and removes the oldest
// when there are many.
func (e *Engine) backUpMetadata() error {
	copies, err := e.metadataCopies()
	if err != nil {
		return err
	}
	if len(copies) > 0 {
		newest := copies[len(copies)-1]
		if filepath.Base(newest) > metadataCopy(e.clock().Add(-metadataInterval)) && !e.isCopyAhead(newest) {
			return nil
		}
	}
	if _, err := e.MetadataBackup(e.system(model.ActionMetadataBackup, "", model.Resource{})); err != nil {
		return err
	}
	for _, old := range copies[:max(0, len(copies)+1-metadataKept)] {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("remove an old copy of the metadata: %w", err)
		}
	}
	return nil
}

// metadataCopy is the name of a copy made at a time.
func metadataCopy(at time.Time) string { return "holdfast-" + at.Format(metadataTime) + ".db" }

// isCopyAhead reports whether a copy was made by a clock that has been set back
// since.
func (e *Engine) isCopyAhead(path string) bool {
	return filepath.Base(path) > metadataCopy(e.clock().Add(time.Minute))
}

// metadataCopies returns the copies there are, oldest first. Those of a clock that
// has been set back since count as the oldest.
func (e *Engine) metadataCopies() ([]string, error) {
	copies, err := filepath.Glob(filepath.Join(e.cfg.DataDir, metadataBackups, "holdfast-*.db"))
	if err != nil {
		return nil, fmt.Errorf("list copies of the metadata: %w", err)
	}
	slices.Sort(copies)
	ahead := slices.IndexFunc(copies, e.isCopyAhead)
	if ahead < 0 {
		return copies, nil
	}
	return slices.Concat(copies[ahead:], copies[:ahead]), nil
}
