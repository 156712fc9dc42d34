package stream

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/objectstore"
)

// notFound is a store that answers some reads of a key, and asks for what it is, as if it did not have it.
type notFound struct {
	objectstore.Store
	key   string
	left  atomic.Int32 // of Get
	stats atomic.Int32
}

func (n *notFound) Get(ctx context.Context, key string, r objectstore.Range) (*objectstore.Object, error) {
	if key == n.key && n.left.Add(-1) >= 0 {
		return nil, &objectstore.Error{Act: "read", Key: key, Store: "test", Kind: objectstore.ErrNotFound}
	}
	return n.Store.Get(ctx, key, r)
}

func (n *notFound) Stat(ctx context.Context, key string) (objectstore.Info, error) {
	if key == n.key && n.stats.Add(-1) >= 0 {
		return objectstore.Info{}, &objectstore.Error{Act: "stat", Key: key, Store: "test", Kind: objectstore.ErrNotFound}
	}
	return n.Store.Stat(ctx, key)
}

func (n *notFound) set(gets, stats int32) {
	n.left.Store(gets)
	n.stats.Store(stats)
}

// TestLogNotFound: a log object that the store has is never the end of the log, and nothing after it is cut off.
func TestLogNotFound(t *testing.T) {
	const objects = 20
	for what, of := range map[string]struct{ gets, stats int32 }{
		"once":                    {1, 0},
		"once, described neither": {1, 1},
		"for a while":             {maxPauses, maxPauses},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &notFound{Store: directory(t), key: Epoch{Number: 1}.logKey(10)}
				r := repository(t, store, ring(t))
				src := &script{owner: "a"}
				w := open(t, claim(t, r, "one", false), Options{}, src)
				for range objects {
					src.add(w, 100)
					flush(t, w)
				}
				kill(w)
				store.set(of.gets, of.stats)
				if seen := texts(t, r, nil, time.Time{}); seen["a"] != objects {
					t.Errorf("a reader sees %v", seen)
				}
				store.set(of.gets, of.stats)
				h := claim(t, r, "two", true)
				if cut := h.Tip().Cut; cut.Log != objects || len(h.Ignored) > 0 {
					t.Errorf("the cut is %+v, ignored is %v", cut, h.Ignored)
				}
				store.set(of.gets, of.stats)
				if seen := texts(t, r, nil, time.Time{}); seen["a"] != objects {
					t.Errorf("a reader of the next epoch sees %v", seen)
				}
			})
		})
	}
}

// TestLogNeverFound: while the store does not find a log object that it has, nobody claims the next epoch.
func TestLogNeverFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &notFound{Store: directory(t), key: Epoch{Number: 1}.logKey(2)}
		r := repository(t, store, ring(t))
		src := &script{owner: "a"}
		w := open(t, claim(t, r, "one", false), Options{}, src)
		for range 2 {
			src.add(w, 100)
			flush(t, w)
		}
		kill(w)
		store.set(1000, 0)
		o := ClaimOptions{Machine: "two", Token: "two", TakeOver: true}
		if _, err := r.Claim(t.Context(), time.Now(), o); !errors.Is(err, objectstore.ErrUnavailable) {
			t.Errorf("the claim: %v", err)
		}
		store.set(0, 0)
		if h, err := r.Claim(t.Context(), time.Now(), o); err != nil || h.Tip().Cut.Log != 2 || h.Tip().Epoch.Number != 2 {
			t.Errorf("afterwards: %+v, %v", h, err)
		}
	})
}

// TestFileNotFound: so it is with the parts of files, in the middle too, and with checkpoints.
func TestFileNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &notFound{Store: directory(t)}
		r := repository(t, store, ring(t))
		w := open(t, claim(t, r, "one", false), Options{}, &script{owner: "a"})
		defer kill(w)
		ref, err := w.storeBytes(t.Context(), []byte("content"))
		if err != nil {
			t.Fatal(err)
		}
		checkpoint(t, w, nil)
		newest := checkpoint(t, w, []Entry{{Kind: "file", Ref: ref}})
		store.key = newest.key()
		store.set(1, 0)
		if h, c := find(t, r, time.Time{}); c.Point != newest || len(h.Ignored) > 0 {
			t.Errorf("%v is used, and ignored %v", c.Point, h.Ignored)
		}
		store.key = ref.partKey(0)
		for _, length := range []int64{-1, 3} {
			store.set(2, 2)
			if _, err := readFile(t, r, ref, 0, length); err != nil {
				t.Errorf("%d bytes, not found twice: %v", length, err)
			}
		}
		store.set(1000, 0)
		if _, err := readFile(t, r, ref, 0, -1); !errors.Is(err, objectstore.ErrUnavailable) || Damaged(err) {
			t.Errorf("never found: %v", err)
		}
		if err := store.Delete(t.Context(), store.key); err != nil {
			t.Fatal(err)
		}
		store.set(0, 0)
		began := time.Now()
		if _, err := readFile(t, r, ref, 0, -1); !errors.Is(err, objectstore.ErrNotFound) || time.Since(began) > 0 {
			t.Errorf("missing: %v after %s", err, time.Since(began))
		}
	})
}
