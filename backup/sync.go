package backup

import (
	"io/fs"
	"path/filepath"
)

// syncFiles makes everything below dir durable, file by file, then each
// directory.
func syncFiles(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncPath(path)
	})
}
