package parallel

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
)

func TestDo(t *testing.T) {
	items := make([]int, 1000)
	for n := range items {
		items[n] = n
	}
	var sum, workers atomic.Int64
	err := Do(t.Context(), 4, slices.Values(items), func(_ context.Context, items <-chan int) error {
		workers.Add(1)
		for n := range items {
			sum.Add(int64(n))
		}
		return nil
	})
	if err != nil || sum.Load() != 999*1000/2 || workers.Load() != 4 {
		t.Errorf("%d workers took items that sum up to %d, %v", workers.Load(), sum.Load(), err)
	}
}

func TestDoFails(t *testing.T) {
	broken, over := errors.New("broken"), errors.New("over")
	endless := func(yield func(int) bool) {
		for yield(1) {
		}
	}
	err := Do(t.Context(), 4, endless, func(ctx context.Context, items <-chan int) error {
		for range items {
			return broken
		}
		return nil
	})
	if err != broken {
		t.Errorf("a worker that fails: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	err = Do(ctx, 4, endless, func(_ context.Context, items <-chan int) error {
		for range items {
			cancel(over)
		}
		return nil
	})
	if err != over {
		t.Errorf("a context that ends: %v", err)
	}
}
