package engine

import (
	"context"
	"time"
)

// nudges wake one of the workers that do, one at a time each, what the records
// say is to be done.
type nudges chan struct{}

func newNudges() nudges { return make(nudges, 1) }

// nudge says that there is something to do.
func (n nudges) nudge() {
	select {
	case n <- struct{}{}:
	default:
	}
}

// serve calls next at every nudge and every interval, again for as long as it
// reports that it did something, until ctx ends.
func (n nudges) serve(ctx context.Context, interval time.Duration, next func(context.Context) bool) {
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
