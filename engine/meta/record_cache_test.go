package meta

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"holdfast/engine/model"
)

// TestCachedRecords reads a cached record while it changes: a caller that knows of a
// change never sees an older record.
func TestCachedRecords(t *testing.T) {
	db := openTest(t)
	if _, err := db.CachedBucket("b"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("a bucket that was never made: %v", err)
	}
	update(t, db, func(tx *Tx) error {
		return tx.Buckets().Insert(model.Bucket{ID: "b", Organization: "o", Project: "p", Name: "00000"})
	})
	var mu sync.Mutex
	told := ""
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				mu.Lock()
				least := told
				mu.Unlock()
				if b, err := db.CachedBucket("b"); err != nil || b.Name < least {
					t.Errorf("told of %s, then %s is read, %v", least, b.Name, err)
					return
				}
			}
		})
	}
	for n := range 200 {
		name := fmt.Sprintf("%05d", n)
		update(t, db, func(tx *Tx) error {
			_, err := tx.Buckets().Update("b", func(b *model.Bucket) error { b.Name = name; return nil })
			return err
		})
		mu.Lock()
		told = name
		mu.Unlock()
	}
	close(done)
	wg.Wait()
	update(t, db, func(tx *Tx) error { return tx.Buckets().Delete("b") })
	if _, err := db.CachedBucket("b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a bucket that was deleted: %v", err)
	}
}

// TestCachedObjectFollows queues changes of an object: a change is visible as soon as it
// is applied.
func TestCachedObjectFollows(t *testing.T) {
	db := openTest(t)
	update(t, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket("b")) })
	for version := range 3 {
		for range 2 { // the second finds the record that the first cached
			if _, err := db.CachedObject("b", "key"); version == 0 != errors.Is(err, ErrNotFound) {
				t.Fatalf("before version %d: %v", version, err)
			}
		}
		want := object("b", "key", version)
		enqueueOn(db, uint64(version+1), func(tx *Tx) error { return putOne(tx, want) })
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
		if o, err := db.CachedObject("b", "key"); err != nil || o.Version != want.Version {
			t.Errorf("version %q, %v; want %q", o.Version, err, want.Version)
		}
	}
}
