package meta

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"holdfast/engine/model"
)

// TestSharedRecords reads a shared record while it is changed: who was told of
// a change never sees what was before it.
func TestSharedRecords(t *testing.T) {
	db, err := Open(filepath.Join(t.TempDir(), "holdfast.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.SharedBucket("b"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("a bucket that was never made: %v", err)
	}
	if err := db.Update(func(tx *Tx) error {
		return tx.Buckets().Insert(model.Bucket{ID: "b", Organization: "o", Project: "p", Name: "00000"})
	}); err != nil {
		t.Fatal(err)
	}
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
				if b, err := db.SharedBucket("b"); err != nil || b.Name < least {
					t.Errorf("told of %s, then %s is read, %v", least, b.Name, err)
					return
				}
			}
		})
	}
	for n := range 200 {
		name := fmt.Sprintf("%05d", n)
		if err := db.Update(func(tx *Tx) error {
			_, err := tx.Buckets().Update("b", func(b *model.Bucket) error { b.Name = name; return nil })
			return err
		}); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		told = name
		mu.Unlock()
	}
	close(done)
	wg.Wait()
	if err := db.Update(func(tx *Tx) error { return tx.Buckets().Delete("b") }); err != nil {
		t.Fatal(err)
	}
	if _, err := db.SharedBucket("b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a bucket that was deleted: %v", err)
	}
}

// TestSharedObjectFollows defers the changes of an object: it is there as soon
// as a deferred change is applied.
func TestSharedObjectFollows(t *testing.T) {
	db, err := Open(filepath.Join(t.TempDir(), "holdfast.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(func(tx *Tx) error {
		return tx.Buckets().Insert(model.Bucket{ID: "b", Organization: "o", Project: "p", Name: "b"})
	}); err != nil {
		t.Fatal(err)
	}
	for version := range 3 {
		for range 2 { // the second finds what the first has remembered
			if _, err := db.SharedObject("b", "key"); version == 0 != errors.Is(err, ErrNotFound) {
				t.Fatalf("before version %d: %v", version, err)
			}
		}
		want := fmt.Sprintf("%026d", version)
		db.Defer(uint64(version+1), func(tx *Tx) error {
			return tx.PutObject(model.Object{Bucket: "b", Key: "key", Version: want, Blob: "blob" + want})
		})
		if err := db.flush(); err != nil {
			t.Fatal(err)
		}
		if o, err := db.SharedObject("b", "key"); err != nil || o.Version != want {
			t.Errorf("version %q, %v; want %q", o.Version, err, want)
		}
	}
}
