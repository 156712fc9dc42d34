package blobstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// walkBatch is the number of names that Walk reads at a time.
const walkBatch = 512

// Walk calls fn for every committed blob that is a file, in no particular order, until fn fails, and returns that
// error unchanged. size is in bytes; modTime is the time of writing. Walk may omit blobs committed or removed
// meanwhile; fn may remove blobs. It also counts the bytes for Local.
//
// At start, the caller may remove blobs without a row, except for those that IsNew reports: their rows may come yet.
func (s *Store) Walk(fn func(ref Ref, size int64, modTime time.Time) error) error {
	return s.walk(func(ref Ref, info fs.FileInfo) error { return fn(ref, contentSize(info.Size()), info.ModTime()) })
}

// IsNew reports whether a blob was written since the store was opened. It may be unfinished.
func (s *Store) IsNew(ref Ref) bool {
	if !refForm.MatchString(string(ref)) {
		return false
	}
	number, ok := parseDirectoryName(string(ref[:8]))
	return ok && s.layout.isNew(number, string(ref[9:]))
}

func (s *Store) walk(fn func(Ref, fs.FileInfo) error) error {
	numbers, err := listNumbered(s.blobs)
	if err != nil {
		return err
	}
	before, sum := s.local.Load(), int64(0)
	for _, n := range numbers {
		if err := s.walkDirectory(n, func(ref Ref, info fs.FileInfo) error {
			sum += info.Size()
			return fn(ref, info)
		}); err != nil {
			return err
		}
	}
	s.local.Add(sum - before)
	return nil
}

func (s *Store) walkDirectory(n uint32, fn func(Ref, fs.FileInfo) error) error {
	d, err := os.Open(filepath.Join(s.blobs, directoryName(n)))
	if err != nil {
		return fmt.Errorf("list blobs: %w", err)
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(walkBatch)
		for _, e := range entries {
			if err := visit(n, e, fn); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list blobs: %w", err)
		}
	}
}

// visit calls fn for an entry if it is a blob.
func visit(n uint32, e fs.DirEntry, fn func(Ref, fs.FileInfo) error) error {
	if !idForm.MatchString(e.Name()) || !e.Type().IsRegular() {
		return nil
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
		return nil
	}
	if err != nil {
		return fmt.Errorf("list blobs: %w", err)
	}
	return fn(makeRef(n, e.Name()), info)
}
