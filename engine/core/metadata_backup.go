package core

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/durable"
)

const (
	// MetadataBackups is where copies of the metadata lie.
	MetadataBackups = "metadata"
	// MetadataInterval is how often a copy is made by itself, MetadataKept how
	// many are kept.
	MetadataInterval = 24 * time.Hour
	MetadataKept     = 14
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
func (c *Core) MetadataBackup(call *model.Call) (MetadataBackup, error) {
	release, err := c.Claims.Take(MetadataFile, "a copy of the metadata")
	if err != nil {
		return MetadataBackup{}, err
	}
	defer release()
	dir := filepath.Join(c.Config.DataDir, MetadataBackups)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return MetadataBackup{}, NoRoom(fmt.Errorf("make directory: %w", err))
	}
	path := filepath.Join(dir, MetadataCopy(c.Clock()))
	if err := durable.WriteStream(path, 0o600, c.Meta.Snapshot); err != nil {
		return MetadataBackup{}, NoRoom(err)
	}
	if err := meta.Check(path); err != nil { // it may not stand for a good one
		return MetadataBackup{}, errors.Join(err, os.Remove(path))
	}
	info, err := os.Stat(path)
	if err != nil {
		return MetadataBackup{}, fmt.Errorf("look at the copy: %w", err)
	}
	call.Note("path", path)
	return MetadataBackup{path, info.Size()}, c.Change(call, func(*meta.Tx) error { return nil })
}

// BackUpMetadata makes a copy when the newest is old, and removes the oldest
// when there are many.
func (c *Core) BackUpMetadata() error {
	copies, err := c.MetadataCopies()
	if err != nil {
		return err
	}
	if len(copies) > 0 {
		newest := copies[len(copies)-1]
		if filepath.Base(newest) > MetadataCopy(c.Clock().Add(-MetadataInterval)) && !c.isCopyAhead(newest) {
			return nil
		}
	}
	if _, err := c.MetadataBackup(c.System(model.ActionMetadataBackup, "", model.Resource{})); err != nil {
		return err
	}
	for _, old := range copies[:max(0, len(copies)+1-MetadataKept)] {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("remove an old copy of the metadata: %w", err)
		}
	}
	return nil
}

// MetadataCopy is the name of a copy made at a time.
func MetadataCopy(at time.Time) string { return "holdfast-" + at.Format(metadataTime) + ".db" }

// isCopyAhead reports whether a copy was made by a clock that has been set back
// since.
func (c *Core) isCopyAhead(path string) bool {
	return filepath.Base(path) > MetadataCopy(c.Clock().Add(time.Minute))
}

// MetadataCopies returns the copies there are, oldest first. Those of a clock that
// has been set back since count as the oldest.
func (c *Core) MetadataCopies() ([]string, error) {
	copies, err := filepath.Glob(filepath.Join(c.Config.DataDir, MetadataBackups, "holdfast-*.db"))
	if err != nil {
		return nil, fmt.Errorf("list copies of the metadata: %w", err)
	}
	slices.Sort(copies)
	ahead := slices.IndexFunc(copies, c.isCopyAhead)
	if ahead < 0 {
		return copies, nil
	}
	return slices.Concat(copies[ahead:], copies[:ahead]), nil
}
