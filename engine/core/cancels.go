package core

import (
	"context"
	"sync"
)

// Cancels lets one act end another that runs in the background, and wait for
// its end.
type Cancels struct {
	Mu      sync.Mutex
	Running map[string]cancelable
}

type cancelable struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

func NewCancels() *Cancels { return &Cancels{Running: map[string]cancelable{}} }

// Add makes what runs under key cancelable until ended is called.
func (c *Cancels) Add(ctx context.Context, key string) (_ context.Context, ended func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	run := cancelable{cancel: cancel, done: make(chan struct{})}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Running[key] = run
	return ctx, func() {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if c.Running[key].done == run.done { // not the next one's
			delete(c.Running, key)
		}
		cancel(nil)
		close(run.done)
	}
}

// Cancel ends what runs under key, saying why, and waits until it has ended.
// It reports whether anything ran; nothing is fine.
func (c *Cancels) Cancel(key string, cause error) bool {
	c.Mu.Lock()
	run, ok := c.Running[key]
	c.Mu.Unlock()
	if ok {
		run.cancel(cause)
		<-run.done
	}
	return ok
}
