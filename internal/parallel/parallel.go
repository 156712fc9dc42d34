// Package parallel distributes work among goroutines.
package parallel

import (
	"context"
	"iter"
	"runtime"
	"sync"
)

// Processors returns the number of processors that computations can use. GOMAXPROCS may be higher, for goroutines that
// wait in system calls.
func Processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// Do runs n workers, hands items out to them, and returns when all have ended. The first error of a worker ends the
// context of the others. Do returns that error, or the cause if ctx ended.
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
