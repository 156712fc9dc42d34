package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/backup/repository"
)

// listFiles returns the directories and files of the data directory of a running server that a backup includes, sorted by
// path, with their current sizes.
func listFiles(ctx context.Context, root *os.Root) ([]repository.Entry, error) {
	return newListing(ctx, root).sorted()
}

// listStopped is listFiles for a server that was shut down. It includes the data of unlogged relations, which PostgreSQL
// recreates only after a recovery.
func listStopped(ctx context.Context, root *os.Root) ([]repository.Entry, error) {
	l := newListing(ctx, root)
	l.stopped = true
	return l.sorted()
}

func (l *listing) sorted() ([]repository.Entry, error) {
	if err := l.directory("."); err != nil {
		return nil, fmt.Errorf("list data directory: %w", err)
	}
	slices.SortFunc(l.entries, func(a, b repository.Entry) int { return strings.Compare(a.Path, b.Path) })
	return l.entries, nil
}

type listing struct {
	ctx      context.Context
	fsys     fs.FS
	entries  []repository.Entry
	stopped  bool            // the server was shut down
	unlogged map[string]bool // relations that have an init fork, by directory and number
}

func newListing(ctx context.Context, root *os.Root) *listing {
	return &listing{ctx: ctx, fsys: root.FS(), unlogged: map[string]bool{}}
}

func (l *listing) directory(dir string) error {
	entries, err := l.read(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if isExcluded(name) || l.isRecreated(name) {
			continue
		}
		if err := l.entry(name, e); err != nil {
			return err
		}
	}
	return nil
}

// read returns the entries of a directory, and records its relations with an init fork: PostgreSQL recreates these
// from it after recovery.
func (l *listing) read(dir string) ([]fs.DirEntry, error) {
	if err := context.Cause(l.ctx); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(l.fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // removed meanwhile
	}
	for _, e := range entries {
		if f, ok := parseRelation(path.Join(dir, e.Name())); ok && f.fork == "init" {
			l.unlogged[path.Join(dir, f.number)] = true
		}
	}
	return entries, err
}

// isRecreated reports whether PostgreSQL recreates a file: it belongs to a temporary relation, or to an unlogged one
// of a running server and is not its init fork.
func (l *listing) isRecreated(name string) bool {
	f, ok := parseRelation(name)
	return ok && (f.temp || !l.stopped && f.fork != "init" && l.unlogged[path.Join(path.Dir(name), f.number)])
}

func (l *listing) entry(name string, e fs.DirEntry) error {
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if emptied[name] { // even if it is a link to another disk
		l.add(name, fs.ModeDir|0o700, info)
		if name == "pg_wal" {
			l.add("pg_wal/archive_status", fs.ModeDir|0o700, info)
		}
		return nil
	}
	switch {
	case e.IsDir():
		l.add(name, fs.ModeDir|info.Mode().Perm(), info)
		return l.directory(name)
	case e.Type().IsRegular():
		l.add(name, info.Mode().Perm(), info)
	case strings.HasPrefix(name, "pg_tblspc/"):
		return fmt.Errorf("%s is a tablespace: %w", name, errTablespace)
	}
	return nil // PostgreSQL uses no sockets or links
}

func (l *listing) add(name string, mode fs.FileMode, info fs.FileInfo) {
	entry := repository.Entry{Path: filepath.ToSlash(name), Mode: mode, ModTime: info.ModTime()}
	if !mode.IsDir() {
		entry.Size = info.Size()
	}
	l.entries = append(l.entries, entry)
}
