package core

import (
	"context"
	"time"
)

// WakeUps wake a worker that processes the pending records one at a time.
type WakeUps chan struct{}

// NewWakeUps returns wake-ups of which none is pending.
func NewWakeUps() WakeUps { return make(WakeUps, 1) }

// Wake tells the worker that there is work to do.
func (n WakeUps) Wake() {
	select {
	case n <- struct{}{}:
	default:
	}
}

// Serve calls next at every wake-up and every interval, again for as long as it
// reports that it did something, until ctx ends.
func (n WakeUps) Serve(ctx context.Context, interval time.Duration, next func(context.Context) bool) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		for next(ctx) && ctx.Err() == nil {
		}
		select {
		case <-n:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
