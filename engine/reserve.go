package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/engine/core"
	"holdfast/internal/durable"
)

// A start needs disk space. For the metadata there are pages in reserve in their file. Sockets and the files that
// servers create when they start also need some: XFS creates no file at all with less than about 200 KiB free. For
// those, a file in the data directory occupies space, which a start on a full disk frees.

const (
	reserveFile = "reserve"
	reserveSize = 4 << 20
)

func (e *Engine) reservePath() string { return filepath.Join(e.Core.Config.DataDir, reserveFile) }

// releaseReserve frees the reserved space if the disk is full.
func (e *Engine) releaseReserve() error {
	_, free, err := core.MeasureDisk(e.Core.Config.DataDir)
	if err != nil || free >= reserveSize/2 {
		return err
	}
	if err := os.Remove(e.reservePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("free the reserved space: %w", err)
	}
	return nil
}

// fillReserve reserves space for a start on a full disk. While there is little, it leaves that to others.
func (e *Engine) fillReserve() error {
	if err := e.Core.Meta.FillReserve(); err != nil && !core.IsDiskFull(err) {
		return err
	}
	if !core.Absent(e.Core.Config.DataDir, reserveFile) {
		return nil
	}
	_, free, err := core.MeasureDisk(e.Core.Config.DataDir)
	if err != nil || free < core.MinFreeSpace+reserveSize {
		return err
	}
	return durable.WriteFile(e.reservePath(), make([]byte, reserveSize), 0o600)
}
