//go:build !linux

package backup

import (
	"io/fs"
	"path/filepath"
)

// syncTree makes everything below dir durable, file by file, then each
// directory.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncPath(path)
	})
}
