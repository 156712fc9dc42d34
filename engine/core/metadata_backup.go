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
	// MetadataBackups is the directory of the metadata copies.
	MetadataBackups = "metadata"
	// MetadataInterval is the time between automatic copies, MetadataKept the number
	// that are kept.
	MetadataInterval = 24 * time.Hour
	MetadataKept     = 14
	// metadataTime is the layout of the time in a copy's name; names sort by it.
	metadataTime = "20060102T150405Z"
)

// MetadataBackup is a copy of the metadata.
type MetadataBackup struct {
	Path      string
	SizeBytes int64
}

// MetadataBackup makes a consistent copy of the metadata while the appliance runs,
// and checks the copy. The key that seals the secrets is in another file, which is
// not copied.
func (c *Core) MetadataBackup(call *model.Call) (MetadataBackup, error) {
	release, err := c.Claims.Take(MetadataFile, "a copy of the metadata")
	if err != nil {
		return MetadataBackup{}, err
	}
	defer release()
	dir := filepath.Join(c.Config.DataDir, MetadataBackups)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return MetadataBackup{}, ExplainDiskFull(fmt.Errorf("make directory: %w", err))
	}
	if err := c.prepareMetadataCopy(dir); err != nil {
		return MetadataBackup{}, err
	}
	path := filepath.Join(dir, MetadataCopy(c.Clock()))
	if err := durable.WriteStream(path, 0o600, c.Meta.Snapshot); err != nil {
		return MetadataBackup{}, ExplainDiskFull(err)
	}
	if err := meta.Check(path); err != nil { // a damaged copy must not pass for a good one
		return MetadataBackup{}, errors.Join(err, os.Remove(path))
	}
	info, err := os.Stat(path)
	if err != nil {
		return MetadataBackup{}, fmt.Errorf("look at the copy: %w", err)
	}
	call.Note("path", path)
	return MetadataBackup{path, info.Size()}, c.Change(call, func(*meta.Tx) error { return nil })
}

// prepareMetadataCopy removes what copies that did not end have left in dir, and refuses a copy that would take the space that
// the servers need. The caller has the claim.
func (c *Core) prepareMetadataCopy(dir string) error {
	leftovers, err := filepath.Glob(filepath.Join(dir, "holdfast-*.db"+durable.NewSuffix))
	if err != nil {
		return fmt.Errorf("list copies of the metadata that did not end: %w", err)
	}
	for _, path := range leftovers {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove a copy of the metadata that did not end: %w", err)
		}
	}
	info, err := os.Stat(filepath.Join(c.Config.DataDir, MetadataFile))
	if err != nil {
		return fmt.Errorf("look at the metadata: %w", err)
	}
	return c.Space.Reserve("", info.Size(), MinFreeSpace, func(free int64) error {
		return NoSpace(nil, "the disk has %d MB free that no other operation needs, and a copy of the metadata may need %d MB: the operator must free disk space",
			free>>20, (info.Size()+MinFreeSpace)>>20)
	})
}

// BackUpMetadata makes a copy if the newest is old, and removes the oldest if there
// are too many.
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

// MetadataCopy returns the file name of a copy made at that time.
func MetadataCopy(at time.Time) string { return "holdfast-" + at.Format(metadataTime) + ".db" }

// isCopyAhead reports whether a copy is dated in the future because the clock was
// set back since.
func (c *Core) isCopyAhead(path string) bool {
	return filepath.Base(path) > MetadataCopy(c.Clock().Add(time.Minute))
}

// MetadataCopies returns the existing copies, oldest first. Copies dated in the
// future, because the clock was set back since, count as the oldest.
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
