package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
)

// List is Store's. It holds the names of one directory of each level.
func (d *directory) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := d.checkRoot()
		if err == nil {
			err = listable(prefix)
		}
		if err == nil {
			w := &walk{d, ctx, prefix, after, yield}
			err = w.below("")
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Info{}, d.fail("list", prefix, err))
		}
	}
}

func listable(prefix string) error {
	if err := checkPrefix(prefix); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return nil
}

// errStop ends a walk whose caller has enough.
var errStop = errors.New("stop")

type walk struct {
	store         *directory
	ctx           context.Context
	prefix, after string
	yield         func(Info, error) bool
}

// below lists the directory of the keys that begin with dir, which is empty or ends
// in a slash.
func (w *walk) below(dir string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	names, err := w.names(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if err == nil {
			err = w.entry(dir + name)
		}
	}
	return err
}

// names returns the names in a directory in the order of the keys they begin: a
// directory counts with its slash.
func (w *walk) names(dir string) ([]string, error) {
	entries, err := os.ReadDir(w.store.path(dir))
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Name()[0] == '.' { // incoming, and what other systems leave on disks
			continue
		}
		if e.IsDir() {
			names = append(names, e.Name()+"/")
		} else if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// entry yields a file, or what a directory holds.
func (w *walk) entry(key string) error {
	if strings.HasSuffix(key, "/") {
		overlaps := strings.HasPrefix(key, w.prefix) || strings.HasPrefix(w.prefix, key)
		if passed := key < w.after && !strings.HasPrefix(w.after, key); passed || !overlaps {
			return nil
		}
		return w.below(key)
	}
	if key <= w.after || !strings.HasPrefix(key, w.prefix) || checkKey(key) != nil {
		return nil
	}
	info, err := os.Lstat(w.store.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !w.yield(describe(key, info), nil) {
		return errStop
	}
	return err
}
