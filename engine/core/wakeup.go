package core

import (
	"context"
	"time"
)

// Nudges wake one of the workers that do, one at a time each, what the records
// say is to be done.
type Nudges chan struct{}

func NewNudges() Nudges { return make(Nudges, 1) }

// Nudge says that there is something to do.
func (n Nudges) Nudge() {
	select {
	case n <- struct{}{}:
	default:
	}
}

// Serve calls next at every nudge and every interval, again for as long as it
// reports that it did something, until ctx ends.
func (n Nudges) Serve(ctx context.Context, interval time.Duration, next func(context.Context) bool) {
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
