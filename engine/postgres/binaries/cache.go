package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast/internal/durable"
)

// scratchPrefix begins the names of incomplete directories in a cache.
const scratchPrefix = ".making-"

// lockCache creates the cache directory and locks it against other processes; the
// returned function unlocks it. Only the holder of the lock creates files, so
// lockCache removes the unfinished files of processes that died.
func (s Search) lockCache(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(s.CacheDir, 0o755); err != nil {
		return nil, fmt.Errorf("make cache directory: %w", err)
	}
	lock, err := durable.LockDir(s.CacheDir)
	for errors.Is(err, durable.ErrLocked) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another process that fills the cache: %w", ctx.Err())
		}
		lock, err = durable.LockDir(s.CacheDir)
	}
	if err != nil {
		return nil, err
	}
	leftovers, _ := filepath.Glob(filepath.Join(s.CacheDir, scratchPrefix+"*"))
	for _, dir := range leftovers {
		if err := os.RemoveAll(dir); err != nil {
			return nil, errors.Join(fmt.Errorf("remove incomplete %s: %w", dir, err), lock.Release())
		}
	}
	return func() { _ = lock.Release() }, nil
}

// scratchDir creates a directory beside the final names. The caller holds the lock.
func (s Search) scratchDir() (string, error) {
	dir, err := os.MkdirTemp(s.CacheDir, scratchPrefix)
	if err != nil {
		return "", fmt.Errorf("make directory in cache: %w", err)
	}
	return dir, os.Chmod(dir, 0o755)
}

// publishDir makes a directory durable, then renames it to its final name.
func publishDir(from, to string) error {
	if err := durable.SyncTree(from); err != nil {
		return err
	}
	return durable.MoveDir(from, to)
}
