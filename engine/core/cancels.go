package core

import (
	"context"
	"sync"
)

// Cancels lets one operation cancel another in the background and wait for its end.
type Cancels struct{ running sync.Map } // *cancelable by key

type cancelable struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// Add makes the operation under key cancelable until ended is called.
func (c *Cancels) Add(ctx context.Context, key string) (_ context.Context, ended func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	run := &cancelable{cancel: cancel, done: make(chan struct{})}
	c.running.Store(key, run)
	return ctx, func() {
		c.running.CompareAndDelete(key, run) // but not a later one
		cancel(nil)
		close(run.done)
	}
}

// Cancel cancels the operation under key with cause and waits until it has ended.
// It reports whether an operation was running; none is fine.
func (c *Cancels) Cancel(key string, cause error) bool {
	run := c.signal(key, cause)
	if run != nil {
		<-run.done
	}
	return run != nil
}

// Signal is Cancel without the wait.
func (c *Cancels) Signal(key string, cause error) { c.signal(key, cause) }

func (c *Cancels) signal(key string, cause error) *cancelable {
	found, _ := c.running.Load(key)
	run, _ := found.(*cancelable)
	if run != nil {
		run.cancel(cause)
	}
	return run
}

// Count returns the number of running cancelable operations.
func (c *Cancels) Count() (n int) {
	for range c.running.Range {
		n++
	}
	return n
}
