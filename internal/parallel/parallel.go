// Package parallel divides work among goroutines.
package parallel

import (
	"context"
	"iter"
	"sync"
)

// Do runs n workers, to which it hands out items, and returns when all have ended.
// The first error of a worker ends the context of the others and is returned, and
// so is the cause of the end of ctx.
func Do[T any](ctx context.Context, n int, items iter.Seq[T], work func(context.Context, <-chan T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan T)
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			if err := work(ctx, queue); err != nil {
				cancel(err)
			}
		})
	}
	for item := range items {
		select {
		case queue <- item:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	workers.Wait()
	return context.Cause(ctx)
}
