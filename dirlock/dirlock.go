// Package dirlock keeps a directory for one process at a time.
package dirlock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrHeld is that another process has the directory, or another Lock of this
// one.
var ErrHeld = errors.New("in use by another process")

// Lock is a directory that was taken. The end of the process lets go of it too.
type Lock struct{ dir *os.File }

// Take takes a directory that exists, without waiting. Where somebody has it,
// the error is ErrHeld and names it.
func Take(dir string) (*Lock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open directory to lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &Lock{f}, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s is %w", dir, ErrHeld)
	}
	return nil, fmt.Errorf("lock %s: %w", dir, err)
}

// Release lets go of the directory. Closing the file would not do: a process
// forked at this moment holds it open until its program begins, and the lock
// is the open file's.
func (l *Lock) Release() error {
	err := syscall.Flock(int(l.dir.Fd()), syscall.LOCK_UN)
	if err := errors.Join(err, l.dir.Close()); err != nil {
		return fmt.Errorf("unlock %s: %w", l.dir.Name(), err)
	}
	return nil
}
