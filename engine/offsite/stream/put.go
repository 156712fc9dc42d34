package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// persist repeats an act until it succeeds, but not after an error of a Content.
func (w *Writer) persist(ctx context.Context, what string, act func() error) error {
	for pause := time.Second; ; pause = min(2*pause, w.options.MaxBackOff) {
		if err := w.Err(); err != nil {
			return err
		}
		err := act()
		switch {
		case err == nil:
			w.clear()
			return nil
		case w.Err() != nil:
			return w.Err()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isOfContent(err):
			return fmt.Errorf("%s: %w", what, err)
		}
		w.note(what, err)
		if err := pauseFor(ctx, pause, err); err != nil {
			return err
		}
	}
}

// pauseFor waits for a random time up to pause, at least half of it, or for as long
// as the store asked for.
func pauseFor(ctx context.Context, pause time.Duration, cause error) error {
	wait := pause/2 + rand.N(pause/2)
	if e := (*objectstore.Error)(nil); errors.As(cause, &e) {
		wait = max(wait, min(e.RetryAfter, time.Hour))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// both returns a context that ends with ctx and with the Writer.
func (w *Writer) both(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(w.ctx, func() { cancel(w.Err()) })
	return ctx, func() { stop(); cancel(nil) }
}
