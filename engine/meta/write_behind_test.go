package meta

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
)

// enqueueOn queues a change that cannot fail.
func enqueueOn(db *DB, position uint64, change func(*Tx) error) {
	db.Enqueue(position, change, func(_ *Tx, err error) error { return err })
}

// TestQueuedChangeFails makes a queued change fail halfway: only that one is left out, its
// replacement gets the error, and no other caller notices.
func TestQueuedChangeFails(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	failed := &CorruptError{Where: "here"}
	add(db, 1)
	db.Enqueue(2, func(tx *Tx) error {
		return errors.Join(tx.PutSetting("count", nil), failed)
	}, func(tx *Tx, err error) error { return tx.PutSetting("instead", []byte(err.Error())) })
	add(db, 3)
	update(t, db, set("after", "set"))
	if got := count(t, db); got != 2 || setting(t, db, "instead") != failed.Error() || setting(t, db, "after") != "set" || db.Applied() != 3 {
		t.Errorf("%d were applied, instead %q, up to %d", got, setting(t, db, "instead"), db.Applied())
	}
}

// add queues a change that increments the setting "count".
func add(db *DB, position uint64) {
	enqueueOn(db, position, func(tx *Tx) error {
		return tx.PutSetting("count", append(tx.Setting("count"), 'x'))
	})
}

func count(t testing.TB, db *DB) (n int) {
	t.Helper()
	view(t, db, func(tx *Tx) error { n = len(tx.Setting("count")); return nil })
	return n
}

func TestQueuedChangeIsSeenByWhatFollows(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	for i := range 10 {
		add(db, uint64(i+1))
		if got := count(t, db); got != i+1 {
			t.Fatalf("View sees %d of %d", got, i+1)
		}
	}
	add(db, 11)
	update(t, db, func(tx *Tx) error {
		if got := len(tx.Setting("count")); got != 11 {
			t.Errorf("Update sees %d of 11", got)
		}
		return nil
	})
	if got := db.Applied(); got != 11 {
		t.Errorf("applied up to %d", got)
	}
}

// TestQueuedChangesSurviveFailures makes other changes fail: each queued one must still be
// applied exactly once.
func TestQueuedChangesSurviveFailures(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	const writers, each = 8, 100
	var mu sync.Mutex
	var wg sync.WaitGroup
	position, committed := uint64(0), 0
	for range writers {
		wg.Go(func() {
			for i := range each {
				mu.Lock()
				position++
				enqueueOn(db, position, func(tx *Tx) error {
					tx.OnCommit(func() { mu.Lock(); committed++; mu.Unlock() })
					return tx.PutSetting("count", append(tx.Setting("count"), 'x'))
				})
				mu.Unlock()
				if i%7 == 0 {
					refused := errors.New("refused")
					if err := db.Update(func(*Tx) error { return refused }); err != refused {
						t.Errorf("Update: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	if got := count(t, db); got != writers*each {
		t.Errorf("%d of %d were applied", got, writers*each)
	}
	mu.Lock()
	defer mu.Unlock()
	if committed != writers*each {
		t.Errorf("%d of %d were told", committed, writers*each)
	}
}

func TestQueuedChangeIsAppliedByItself(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	done := make(chan struct{})
	enqueueOn(db, 1, func(tx *Tx) error {
		tx.OnCommit(func() { close(done) })
		return nil
	})
	<-done // otherwise the test times out
}

// TestUpdateFollowsAllQueued queues more changes than one transaction applies.
func TestUpdateFollowsAllQueued(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	for round := range 3 {
		held, release := make(chan struct{}), make(chan struct{})
		go db.Update(func(*Tx) error { // meanwhile no change is applied
			held <- struct{}{}
			<-release
			return nil
		})
		<-held
		const n = 3*queueBatch + 1
		for i := range n {
			add(db, uint64(round*n+i+1))
		}
		close(release)
		update(t, db, func(tx *Tx) error {
			if got := len(tx.Setting("count")); got != (round+1)*n {
				t.Errorf("an Update sees %d of %d", got, (round+1)*n)
			}
			return nil
		})
	}
}

func TestCloseAppliesQueued(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	const n = queueBatch + 3
	for i := range n {
		add(db, uint64(i+1))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openChecked(t, path)
	if got := count(t, db); got != n || db.Applied() != n {
		t.Errorf("%d of %d are there, applied up to %d", got, n, db.Applied())
	}
}

func BenchmarkEnqueue(b *testing.B) {
	db := openTest(b)
	update(b, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket("bucket_1")) })
	for i := range b.N {
		o := object("bucket_1", fmt.Sprintf("key/%09d", i), i)
		o.Segment = 1
		enqueueOn(db, uint64(i+1), func(tx *Tx) error { return putOne(tx, o) })
	}
	view(b, db, func(*Tx) error { return nil })
}
