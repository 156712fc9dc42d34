package stream

import (
	"context"
	"sync"
)

// budget is a semaphore in bytes.
type budget struct {
	mu      sync.Mutex
	free    int64
	changed chan struct{} // closed and replaced when free grows
}

func newBudget(bytes int64) *budget { return &budget{free: bytes, changed: make(chan struct{})} }

// take waits until n bytes are free and takes them.
func (b *budget) take(ctx context.Context, n int64) error {
	for {
		b.mu.Lock()
		if b.free >= n {
			b.free -= n
			b.mu.Unlock()
			return nil
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	close(b.changed)
	b.changed = make(chan struct{})
}
