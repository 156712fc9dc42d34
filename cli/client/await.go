package client

import (
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

// await polls get until done returns true. It passes every record to seen,
// which may be nil.
func await[T any](ctx context.Context, get func(context.Context) (T, error), done func(T) bool, seen func(T)) (T, error) {
	pause, lost := firstPoll, time.Time{}
	for {
		record, err := get(ctx)
		switch {
		case err == nil:
			lost = time.Time{}
			if seen != nil {
				seen(record)
			}
			if done(record) {
				return record, nil
			}
		case !passes(ctx, err) || !lost.IsZero() && time.Since(lost) > patience:
			return record, err
		case lost.IsZero():
			lost = time.Now()
		}
		if err := sleep(ctx, max(pause, retryAfter(err))); err != nil {
			return record, err
		}
		pause = min(pause*3/2, lastPoll)
	}
}

// passes reports whether a retry may succeed: the appliance was not reached,
// answered with a server error, or limited the rate.
func passes(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, ErrNotAPI) {
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
