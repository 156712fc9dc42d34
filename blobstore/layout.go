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

	"holdfast/internal/durable"
)

// layout spreads blobs over directories of limited size, because syncing and
// listing a directory slow down as it grows. New blobs go to the newest one.
type layout struct {
	fs    durable.FS
	blobs string
	size  int
	sync  func(durable.Handle) error // syncs a directory, unless the store is read-only

	mu      sync.Mutex
	current *directory
}

// directory is one of the layout's, held open to be synced.
type directory struct {
	number uint32
	path   string
	handle durable.Handle
	group  *groupSync

	used int // blobs ever placed here; guarded by layout.mu
	held int // commits under way, plus one while current; guarded by layout.mu
}

// openLayout removes directories that became empty and goes on with the newest.
func openLayout(fsys durable.FS, blobs string, size int, sync func(durable.Handle) error) (*layout, error) {
	l := &layout{fs: fsys, blobs: blobs, size: size, sync: sync}
	numbers, err := listNumbered(blobs)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return l, l.roll(1)
	}
	newest := numbers[len(numbers)-1]
	for _, n := range numbers[:len(numbers)-1] {
		err := fsys.Remove(filepath.Join(blobs, directoryName(n)))
		if err != nil && !isNotEmpty(err) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove empty blob directory: %w", err)
		}
	}
	return l, l.roll(newest)
}

// listNumbered returns the numbers that are names in a directory, ascending.
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

// roll makes directory number n the current one, and the directory itself
// where it is missing.
func (l *layout) roll(n uint32) error {
	path := filepath.Join(l.blobs, directoryName(n))
	err := l.fs.Mkdir(path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make blob directory: %w", err)
	}
	if err := l.syncNames(); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("count blobs: %w", err)
	}
	h, err := l.fs.OpenDir(path)
	if err != nil {
		return fmt.Errorf("open blob directory: %w", err)
	}
	group := newGroupSync(func() error { return l.sync(h) })
	d := &directory{number: n, path: path, handle: h, group: group, used: len(entries), held: 1}
	previous := l.current
	l.current = d
	l.dropLocked(previous)
	return nil
}

// syncNames makes the names of the directories durable.
func (l *layout) syncNames() error {
	h, err := l.fs.OpenDir(l.blobs)
	if err != nil {
		return fmt.Errorf("open directory to sync: %w", err)
	}
	defer h.Close()
	return l.sync(h)
}

// place returns the directory for one more blob. The caller drops it.
func (l *layout) place() (*directory, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current.used >= l.size {
		if err := l.roll(l.current.number + 1); err != nil {
			return nil, err
		}
	}
	l.current.used++
	l.current.held++
	return l.current, nil
}

// drop ends a place.
func (l *layout) drop(d *directory) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked(d)
}

// dropLocked closes d after its last user. It was open for syncing only, so
// its close has no news.
func (l *layout) dropLocked(d *directory) {
	if d == nil {
		return
	}
	if d.held--; d.held == 0 {
		d.handle.Close()
	}
}

// Close closes the current directory; no commit may be under way.
func (l *layout) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked(l.current)
	l.current = nil
}

func isNotEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}
