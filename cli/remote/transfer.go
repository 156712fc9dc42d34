package remote

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
)

// inParallel is the number of concurrent transfers.
const inParallel = 4

// inOrder does work for every item, a few concurrently, and returns the results
// in the order of the items. The first error stops all work; the results are
// then those completed before.
func inOrder[T, R any](t *task, items []T, work func(*task, T) (R, error)) ([]R, error) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	inner := *t
	inner.ctx = ctx
	results, done := make([]R, len(items)), make([]bool, len(items))
	indexes := make(chan int)
	var workers sync.WaitGroup
	for range min(inParallel, len(items)) {
		workers.Go(func() {
			for i := range indexes {
				if ctx.Err() != nil {
					return // both were ready: the index and the cancellation
				}
				var err error
				if results[i], err = work(&inner, items[i]); err != nil {
					cancel(err)
				}
				done[i] = err == nil
			}
		})
	}
	for i := 0; i < len(items) && ctx.Err() == nil; i++ {
		select {
		case indexes <- i:
		case <-ctx.Done():
		}
	}
	close(indexes)
	workers.Wait()
	kept := results[:0]
	for i, r := range results {
		if done[i] {
			kept = append(kept, r)
		}
	}
	return kept, context.Cause(ctx)
}

// transferred prints what was transferred, one line each or all as JSON, and
// returns the error that stopped the rest.
func transferred[R any](t *task, results []R, err error, line func(R) string) error {
	if len(results) == 0 && err != nil {
		return err
	}
	shown := t.show(append([]R{}, results...), func(w io.Writer) {
		for _, r := range results {
			fmt.Fprintln(w, printable(line(r)))
		}
	})
	return cmp.Or(err, shown)
}
