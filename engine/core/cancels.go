package core

import (
	"context"
	"sync"
)

// Cancels lets one act end another that runs in the background, and wait for
// its end.
type Cancels struct {
	mu      sync.Mutex
	running map[string]cancelable
}

type cancelable struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

func NewCancels() *Cancels { return &Cancels{running: map[string]cancelable{}} }

// Add makes what runs under key cancelable until ended is called.
func (c *Cancels) Add(ctx context.Context, key string) (_ context.Context, ended func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	run := cancelable{cancel: cancel, done: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[key] = run
	return ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.running[key].done == run.done { // not the next one's
			delete(c.running, key)
		}
		cancel(nil)
		close(run.done)
	}
}

// Cancel ends what runs under key, saying why, and waits until it has ended.
// It reports whether anything ran; nothing is fine.
func (c *Cancels) Cancel(key string, cause error) bool {
	c.mu.Lock()
	run, ok := c.running[key]
	c.mu.Unlock()
	if ok {
		run.cancel(cause)
		<-run.done
	}
	return ok
}

// Count returns how many cancelable acts are running.
func (c *Cancels) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.running)
}
