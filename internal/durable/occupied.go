package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
)

// occupiedBlock is the unit in bytes in which file systems allocate space.
const occupiedBlock = 4096

// Occupied returns the disk usage in bytes of a file of size bytes.
func Occupied(size int64) int64 {
	return (size + occupiedBlock - 1) / occupiedBlock * occupiedBlock
}

// MeasureOccupied returns the disk usage in bytes of the files below dir, without the directories themselves. A
// directory that does not exist occupies nothing. Files that disappear meanwhile are ignored.
func MeasureOccupied(dir string) (occupied int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				occupied += allocated(info)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return occupied, fmt.Errorf("measure what %s occupies on disk: %w", dir, err)
	}
	return occupied, nil
}

// blockUnit is the unit in bytes of a file's number of blocks, whatever the file system's.
const blockUnit = 512

// allocated returns the disk usage of a file: a sparse one takes less than its size, and what a file system
// reserved beyond its end does not count.
func allocated(info fs.FileInfo) int64 {
	occupied := Occupied(info.Size())
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		occupied = min(occupied, int64(stat.Blocks)*blockUnit)
	}
	return occupied
}
