package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// LinkTree makes to a copy of from, a file or a directory with what is below it,
// out of hard links. to must not exist, and its parent must. Files that disappear
// meanwhile are left out, and so are sockets and links: a caller that needs every
// file must keep others from removing any. LinkTree syncs nothing.
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
