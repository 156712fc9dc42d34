package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// LinkTree copies from, a file or a directory tree, to to with hard links. to must not exist, but its parent must.
// It omits sockets, links and files that disappear meanwhile: a caller that needs every file must keep others from
// removing any. LinkTree syncs nothing.
func LinkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != from {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.Mkdir(target, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		if err := os.Link(path, target); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
