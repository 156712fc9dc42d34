package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// put stores an object, and tries again until it succeeds, ctx ends, or the content
// cannot be read. Another object below the key ends the Writer.
func (w *Writer) put(ctx context.Context, key string, plain sealed.Body) error {
	body, err := w.repo.seal(key, plain)
	if err != nil {
		return err
	}
	return w.persist(ctx, "store "+key, func() error {
		opts := objectstore.CreateOptions{}
		if w.options.Lock != "" {
			opts.Retention = objectstore.Retention{Mode: w.options.Lock, Until: time.Now().Add(w.options.Retention)}
		}
		err := w.repo.create(ctx, key, plain, body, opts)
		if errors.Is(err, errForeign) {
			w.fence(err)
		}
		return err
	})
}

// probeEvery is the longest time between attempts of one of the acts that the store makes fail: by it the others learn that
// the store is back.
const probeEvery = 5 * time.Second

// retry is an act that failed and is tried again.
type retry struct{ what string }

// persist repeats an act until it succeeds, but not after an error of a Content.
func (w *Writer) persist(ctx context.Context, what string, act func() error) error {
	r := &retry{what}
	defer w.endRetry(r)
	for pause := time.Second; ; {
		if err := w.Err(); err != nil {
			return err
		}
		err := act()
		switch {
		case err == nil:
			w.endRetry(r)
			w.clear()
			return nil
		case w.Err() != nil:
			return w.Err()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isOfContent(err):
			return fmt.Errorf("%s: %w", what, err)
		}
		ended, longest := w.noteRetry(r, err)
		if pause, err = pauseFor(ctx, min(pause, longest), err, ended); err != nil {
			return err
		}
	}
}

// noteRetry notes that an act failed. It returns a channel that is closed when another one that failed has ended, and the
// longest time until the next attempt: many acts must not load a store that is away, nor send their bytes again and again to
// one that is full, so only the first one is tried often.
func (w *Writer) noteRetry(r *retry, err error) (ended <-chan struct{}, longest time.Duration) {
	w.note(r.what, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.retries, r) {
		w.retries = append(w.retries, r)
	}
	if w.retries[0] == r {
		return w.retryEnded, min(probeEvery, w.options.MaxBackOff)
	}
	return w.retryEnded, w.options.MaxBackOff
}

// endRetry wakes the other acts that failed, if this one did. Either the store is back, or another one is now the first.
func (w *Writer) endRetry(r *retry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.retries, r)
	if i < 0 {
		return
	}
	w.retries = slices.Delete(w.retries, i, i+1)
	close(w.retryEnded)
	w.retryEnded = make(chan struct{})
}

// pauseFor waits for a random time up to pause, at least half of it, and returns the next, longer pause. It ends early when
// another act has ended, and then the next pause is short again. The time that the store asked for always passes.
func pauseFor(ctx context.Context, pause time.Duration, cause error, ended <-chan struct{}) (next time.Duration, err error) {
	wait := pause/2 + rand.N(pause/2)
	if e := (*objectstore.Error)(nil); errors.As(cause, &e) && e.RetryAfter > 0 {
		wait, ended = max(wait, min(e.RetryAfter, time.Hour)), nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return 2 * pause, nil
	case <-ended:
		return time.Second, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// both returns a context that ends with ctx and with the Writer.
func (w *Writer) both(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(w.ctx, func() { cancel(w.Err()) })
	return ctx, func() { stop(); cancel(nil) }
}
