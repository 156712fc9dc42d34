package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/internal/durable"
)

// controlNewFile is the name of pg_control until everything else is synced.
const controlNewFile = "global/pg_control.holdfast-restore"

// target is a data directory being created. All file access goes through root, so no name can escape the directory.
type target struct {
	dir  string
	made bool // created by openTarget
	root *os.Root
	tree *durable.Tree
}

// openTarget opens dir, which must be empty or absent.
func openTarget(dir string) (*target, error) {
	t := &target{dir: dir}
	err := os.Mkdir(dir, 0o700)
	t.made = err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	if err := mustBeEmpty(dir); err != nil {
		return nil, err
	}
	// PostgreSQL refuses a directory that other users can read.
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("protect data directory: %w", err)
	}
	if t.root, err = os.OpenRoot(dir); err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	if t.tree, err = durable.OpenTree(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open data directory: %w", err), t.root.Close())
	}
	return t, nil
}

func mustBeEmpty(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open data directory: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read data directory: %w", err)
	}
	return fmt.Errorf("data directory %s is not empty: it holds %q", dir, names[0])
}

func (t *target) close() {
	t.tree.Close()
	t.root.Close()
}

func (t *target) mkdir(name string) error {
	if err := t.root.Mkdir(name, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return nil
}

func (t *target) create(name string) (*os.File, error) {
	f, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create file: %w", err)
	}
	return f, nil
}

// write creates a small file.
func (t *target) write(name string, content []byte) error {
	f, err := t.create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// finish makes everything durable, and then completes the directory with pg_control.
func (t *target) finish(control []byte) error {
	if err := t.tree.Sync(); err != nil {
		return fmt.Errorf("sync data directory: %w", err)
	}
	if err := t.publishControl(control); err != nil {
		return err
	}
	if err := durable.SyncDir(durable.OS{}, filepath.Dir(t.dir)); err != nil {
		return fmt.Errorf("sync parent of data directory: %w", err)
	}
	return nil
}

func (t *target) publishControl(control []byte) error {
	f, err := t.create(controlNewFile)
	if err != nil {
		return err
	}
	_, err = f.Write(control)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", controlFile, err)
	}
	if err := t.root.Rename(controlNewFile, controlFile); err != nil {
		return fmt.Errorf("publish %s: %w", controlFile, err)
	}
	if err := durable.SyncDir(durable.OS{}, filepath.Join(t.dir, filepath.Dir(controlFile))); err != nil {
		return fmt.Errorf("sync name of %s: %w", controlFile, err)
	}
	return nil
}

// discard removes everything that was written, pg_control first, so that an interrupted removal leaves no directory
// that looks complete.
func (t *target) discard() error {
	errs := []error{t.root.RemoveAll(controlFile)}
	entries, err := os.ReadDir(t.dir)
	errs = append(errs, err)
	for _, e := range entries {
		errs = append(errs, t.root.RemoveAll(e.Name()))
	}
	if t.made {
		errs = append(errs, os.Remove(t.dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove unfinished data directory: %w", err)
	}
	return nil
}
