package engine

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/engine/meta"
	"holdfast/internal/durable"
)

// lockPatience is how long lockDirectory waits for a process that is about to end.
const lockPatience = 300 * time.Millisecond

// lockDirectory locks a data directory for an appliance, or for an import into it. A recovery locks it too. It returns
// meta.ErrLocked if another process has the lock. The function that it returns releases the lock, once.
func lockDirectory(dir string) (unlock func() error, err error) {
	for until := time.Now().Add(lockPatience); ; time.Sleep(lockPatience / 10) {
		lock, err := durable.LockDir(dir)
		if err == nil {
			return sync.OnceValue(lock.Release), nil
		}
		if !errors.Is(err, durable.ErrLocked) {
			return nil, err
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("%w: %w", meta.ErrLocked, err)
		}
	}
}
