package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// occupiedBlock is the unit in which file systems give space to files, in bytes.
const occupiedBlock = 4096

// Occupied returns how many bytes of the disk a file of size bytes occupies.
func Occupied(size int64) int64 {
	return (size + occupiedBlock - 1) / occupiedBlock * occupiedBlock
}

// MeasureOccupied returns how many bytes the files below dir occupy on disk,
// without the directories themselves. A directory that does not exist occupies
// nothing. Files that disappear meanwhile are left out.
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
