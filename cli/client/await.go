package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	"holdfast/server/api/wire"
)

// Polls start frequent, for short tasks, and slow down.
const (
	firstPoll = 100 * time.Millisecond
	lastPoll  = 2 * time.Second
	// patience is how long a wait continues while the appliance cannot be
	// reached: it may be restarting.
	patience = time.Minute
)

// outage is a time in which the appliance cannot be reached; zero is none.
type outage struct {
	began time.Time
	pause time.Duration
}

// wait waits before the next attempt after one that ended with err, nil where it was a
// stream's end. It returns err if another attempt would not help, or the outage has
// lasted for too long.
func (o *outage) wait(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case CodeOf(err) == wire.CodeRateLimited: // the appliance is there
		o.began = time.Time{}
	case err != nil && (!passes(ctx, err) || !o.began.IsZero() && time.Since(o.began) > patience):
		return err
	case o.began.IsZero():
		o.began = time.Now()
	}
	o.pause = min(max(o.pause*3/2, firstPoll), lastPoll)
	return sleep(ctx, max(o.pause, retryAfter(err)))
}

// patiently calls get until it succeeds or fails for good.
func patiently[T any](ctx context.Context, get func(context.Context) (T, error)) (T, error) {
	for away := (outage{}); ; {
		record, err := get(ctx)
		if err == nil {
			return record, nil
		}
		if err := away.wait(ctx, err); err != nil {
			return record, err
		}
	}
}

// awaitRecord returns a record when it is final. Until then it follows the newest
// operation that o selects and that makes the record, and passes its states to seen.
func awaitRecord[T any](
	ctx context.Context, c *Client, get func(context.Context) (T, error), final func(T) bool,
	operation func(T) OperationOptions, makes func(wire.Operation) bool, seen func(wire.Operation),
) (T, error) {
	record, err := patiently(ctx, get)
	if err != nil || final(record) {
		return record, err
	}
	op, err := patiently(ctx, func(ctx context.Context) (wire.Operation, error) {
		for op, err := range c.Operations(ctx, operation(record)) {
			if err != nil || makes(op) {
				return op, err
			}
		}
		return wire.Operation{}, errNoOperation
	})
	if err == nil {
		_, err = c.AwaitOperation(ctx, op, seen)
	}
	if err != nil && CodeOf(err) != wire.CodeNotFound { // if the operation is gone, so is its database
		return record, err
	}
	record, getErr := patiently(ctx, get)
	if getErr == nil && !final(record) {
		getErr = cmp.Or(err, errNoOperation)
	}
	return record, getErr
}

// errNoOperation means that no operation makes a record that is not final.
var errNoOperation = errors.New("there is no operation to wait for")

// passes reports whether a retry may succeed: the appliance was not reached,
// answered with a server error, or limited the rate.
func passes(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, ErrNotAPI) || errors.Is(err, errNoOperation) {
		return false
	}
	refusal, refused := errors.AsType[*Error](err)
	return !refused || refusal.Code == wire.CodeRateLimited || refusal.Status >= 500
}

func retryAfter(err error) time.Duration {
	if refusal, ok := errors.AsType[*Error](err); ok {
		return refusal.RetryAfter
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
