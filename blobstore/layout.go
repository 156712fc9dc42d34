package blobstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// layout distributes blobs over directories of limited size, because syncing and listing a directory slow down as it
// grows. New blobs go to the newest directory.
type layout struct {
	store *Store
	size  int

	mu      sync.Mutex
	current *directory
	first   uint32          // the number of the directory that new blobs went to when the store was opened
	placed  map[string]bool // the ids that were placed in it since, at most size
}

// directory is a directory of the layout.
type directory struct {
	number uint32
	path   string
	sync   func() error // makes its names durable; callers share syncs

	used int // blobs ever placed here; guarded by layout.mu
}

// openLayout removes directories that became empty and continues with the newest.
func openLayout(s *Store, size int) (*layout, error) {
	l := &layout{store: s, size: size, first: 1, placed: map[string]bool{}}
	numbers, err := listNumbered(s.blobs)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return l, l.roll(1)
	}
	newest := numbers[len(numbers)-1]
	for _, n := range numbers[:len(numbers)-1] {
		err := s.fs.Remove(filepath.Join(s.blobs, directoryName(n)))
		if err != nil && !isNotEmpty(err) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove empty blob directory: %w", err)
		}
	}
	l.first = newest
	return l, l.roll(newest)
}

// listNumbered returns the numbers among the names in a directory, ascending.
func listNumbered(dir string) ([]uint32, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list blob store: %w", err)
	}
	var numbers []uint32
	for _, e := range entries {
		if n, ok := parseDirectoryName(e.Name()); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// roll makes directory number n the current one, creating it if it is missing.
func (l *layout) roll(n uint32) error {
	s, path := l.store, filepath.Join(l.store.blobs, directoryName(n))
	if err := s.fs.Mkdir(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make blob directory: %w", err)
	}
	if err := s.syncDir(s.blobs); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("count blobs: %w", err)
	}
	group := newGroup[struct{}]()
	l.current = &directory{number: n, path: path, used: len(entries), sync: func() error {
		return group.do(func([]struct{}) error { return s.syncDir(path) })
	}}
	return nil
}

// place returns the directory for the next blob, the one with that id.
func (l *layout) place(id string) (*directory, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current.used >= l.size {
		if err := l.roll(l.current.number + 1); err != nil {
			return nil, err
		}
	}
	l.current.used++
	if l.current.number == l.first {
		l.placed[id] = true
	}
	return l.current, nil
}

// isNew reports whether a blob was placed since the store was opened.
func (l *layout) isNew(number uint32, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return number > l.first || number == l.first && l.placed[id]
}

func isNotEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}
