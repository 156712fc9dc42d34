package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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
				occupied += Occupied(info.Size())
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
