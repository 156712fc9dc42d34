package durable

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrLocked means that another process, or another DirLock of this process, holds the lock.
var ErrLocked = errors.New("in use by another process")

// DirLock is an exclusive lock on a directory. The kernel releases it when the
// process ends.
type DirLock struct{ dir *os.File }

// LockDir locks an existing directory without waiting. If it is already locked, the error wraps ErrLocked and names
// the directory.
func LockDir(dir string) (*DirLock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open directory to lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &DirLock{f}, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s is %w", dir, ErrLocked)
	}
	return nil, fmt.Errorf("lock %s: %w", dir, err)
}

// Release unlocks the directory. Closing the file is not enough: the lock belongs to the open file description,
// which a concurrently forked child holds open until it calls exec.
func (l *DirLock) Release() error {
	err := syscall.Flock(int(l.dir.Fd()), syscall.LOCK_UN)
	if err := errors.Join(err, l.dir.Close()); err != nil {
		return fmt.Errorf("unlock %s: %w", l.dir.Name(), err)
	}
	return nil
}
