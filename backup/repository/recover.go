package repository

import (
	"errors"
	"fmt"

	"holdfast/internal/durable"
)

// Recover makes a repository that a failed sync has made read-only writable again, once syncs succeed: it forgets what is open
// and finds the files anew, as Open does. What the failed change left is unfinished or not referred to, and Clean removes it. It
// returns false if the repository needs no recovery, and ErrBusy while a backup is being written.
func (r *Repository) Recover() (recovered bool, err error) {
	if !r.FailedSync() {
		return false, nil
	}
	if !r.removal.TryLock() {
		return false, ErrBusy
	}
	defer r.removal.Unlock()
	for _, name := range []string{packDir, indexDir, manifestDir} {
		if err := durable.SyncDir(r.fs, r.path(name)); err != nil {
			return false, fmt.Errorf("recover backup repository: %w", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == errClosed {
		return false, nil
	}
	for number, x := range r.indexes {
		err = errors.Join(err, x.close())
		delete(r.indexes, number)
	}
	clear(r.homes)
	if err = errors.Join(err, r.findSessions()); err != nil {
		return false, fmt.Errorf("recover backup repository: %w", err)
	}
	r.failed = nil
	return true, nil
}

// FailedSync reports whether a failed sync has made the repository read-only.
func (r *Repository) FailedSync() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.lock != nil && errors.Is(r.failed, ErrReadOnly)
}
