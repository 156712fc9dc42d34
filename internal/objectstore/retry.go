package objectstore

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstWait = 100 * time.Millisecond
	longest   = 5 * time.Second
)

// repeat calls attempt until it succeeds, fails for good, or patience ends, which
// begins with the first failure: a large object over a slow line takes longer. It
// waits longer each time, and at least as long as the store asks. attempt returns nil or an
// *Error that says whether another attempt may help.
func repeat(ctx context.Context, patience time.Duration, attempt func() *Error) error {
	var deadline time.Time
	for wait := firstWait; ; wait = min(2*wait, longest) {
		err := attempt()
		if err == nil {
			return nil
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(patience)
		}
		pause := max(err.RetryAfter, wait/2+rand.N(wait/2))
		if !err.retry || time.Until(deadline) < pause {
			return err
		}
		select {
		case <-ctx.Done():
			return err.because(ctx.Err())
		case <-time.After(pause):
		}
	}
}

// because returns the error with another kind, for a caller that waits no longer.
// What was wrong before stays in the text.
func (e *Error) because(kind error) *Error {
	changed := *e
	changed.Detail = e.Kind.Error() + ": " + e.Detail
	changed.Kind, changed.Remedy, changed.retry = kind, "", false
	return &changed
}
