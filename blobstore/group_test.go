package blobstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestGroupShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs atomic.Int32
		g, work := newGroup[struct{}](), func([]struct{}) error {
			syncs.Add(1)
			time.Sleep(time.Second)
			return nil
		}
		var wg sync.WaitGroup
		wg.Go(func() { g.do(work) })
		synctest.Wait() // the first runs
		for range 50 {
			wg.Go(func() { g.do(work) })
		}
		begin := time.Now()
		wg.Wait()
		if syncs.Load() != 2 || time.Since(begin) != 2*time.Second {
			t.Errorf("51 callers took %d syncs and %v", syncs.Load(), time.Since(begin))
		}
	})
}

// TestGroupCovers checks that no caller returns on a sync that began before its call.
func TestGroupCovers(t *testing.T) {
	var begun atomic.Int64
	g, work := newGroup[struct{}](), func([]struct{}) error { begun.Add(1); return nil }
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				before := begun.Load()
				g.do(work)
				if begun.Load() == before {
					t.Error("returned without a sync of its own time")
				}
			}
		})
	}
	wg.Wait()
}

func TestGroupError(t *testing.T) {
	want := errors.New("disk on fire")
	g, work := newGroup[struct{}](), func([]struct{}) error { return want }
	if err := g.do(work); err != want {
		t.Errorf("error %v", err)
	}
}
