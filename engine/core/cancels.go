package core

import (
	"context"
	"sync"
)

// Cancels lets one act end another that runs in the background, and wait for
// its end.
type Cancels struct{ running sync.Map } // *cancelable by the key

type cancelable struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// Add makes what runs under key cancelable until ended is called.
func (c *Cancels) Add(ctx context.Context, key string) (_ context.Context, ended func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	run := &cancelable{cancel: cancel, done: make(chan struct{})}
	c.running.Store(key, run)
	return ctx, func() {
		c.running.CompareAndDelete(key, run) // not the next one's
		cancel(nil)
		close(run.done)
	}
}

// Cancel ends what runs under key, saying why, and waits until it has ended.
// It reports whether anything ran; nothing is fine.
func (c *Cancels) Cancel(key string, cause error) bool {
	found, ok := c.running.Load(key)
	if ok {
		run := found.(*cancelable)
		run.cancel(cause)
		<-run.done
	}
	return ok
}

// Count returns how many cancelable acts are running.
func (c *Cancels) Count() (n int) {
	for range c.running.Range {
		n++
	}
	return n
}
