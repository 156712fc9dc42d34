package meta

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"holdfast/engine/model"
)

// fill puts n objects into a bucket, and returns the number of the next one.
func fill(t testing.TB, db *DB, bucket string, from, n int) int {
	t.Helper()
	objects := make([]model.Object, 0, n)
	for i := range n {
		objects = append(objects, object(bucket, fmt.Sprintf("key/%06d", i), from+i))
	}
	put(t, db, objects...)
	return from + n
}

// unlinkAll acts as the engine: it unlinks discarded blobs until there are none, and
// returns the blobs and the number of rounds.
func unlinkAll(t testing.TB, db *DB, limit int) (unlinked map[string]int, rounds int) {
	t.Helper()
	unlinked = map[string]int{}
	for {
		var refs []string
		view(t, db, func(tx *Tx) error { refs = tx.DiscardedBlobs(limit); return nil })
		if len(refs) == 0 {
			return unlinked, rounds
		}
		rounds++
		for _, ref := range refs {
			unlinked[ref]++
		}
		update(t, db, func(tx *Tx) error { return tx.ForgetBlobs(refs) })
		if err := check(db); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDropDamaged: an unreadable object prevents neither the drop of its bucket nor the
// unlinking of other objects' blobs.
func TestDropDamaged(t *testing.T) {
	t.Parallel()
	for _, damaged := range []int{0, dropBatch + 1} {
		db, err := Open(filepath.Join(t.TempDir(), "meta.db")) // not checked: it is damaged
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		update(t, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket("bucket_1")) })
		const n = 2 * dropBatch
		fill(t, db, "bucket_1", 1, n)
		update(t, db, func(tx *Tx) error {
			keys, _ := tx.objectBuckets("bucket_1")
			return keys.Put(fmt.Appendf(nil, "key/%06d", damaged), []byte("damaged"))
		})
		update(t, db, func(tx *Tx) error { return tx.DropBucket("bucket_1") })
		for unlinked := 0; ; {
			var refs []string
			view(t, db, func(tx *Tx) error { refs = tx.DiscardedBlobs(n); return nil })
			if unlinked += len(refs); len(refs) == 0 {
				if unlinked != n-1 {
					t.Errorf("of %d blobs %d were unlinked", n, unlinked)
				}
				break
			}
			update(t, db, func(tx *Tx) error { return tx.ForgetBlobs(refs) })
		}
	}
}

func TestDropBucket(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, dropBatch - 1, dropBatch, dropBatch + 1, 3*dropBatch + 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			db := openWithBucket(t)
			update(t, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket("bucket_2")) })
			fill(t, db, "bucket_2", fill(t, db, "bucket_1", 1, n), 3)
			update(t, db, func(tx *Tx) error { return tx.DropBucket("bucket_1") })
			view(t, db, func(tx *Tx) error {
				if at := len(tx.DiscardedBlobs(2 * dropBatch)); at != min(n, dropBatch) {
					t.Errorf("the transaction discarded %d", at)
				}
				return nil
			})
			expectGone(t, db, "bucket_1")
			if err := check(db); err != nil {
				t.Fatal(err)
			}
			unlinked, _ := unlinkAll(t, db, 400)
			for i := 1; i <= n; i++ {
				if ref := fmt.Sprintf("blob_%d", i); unlinked[ref] != 1 {
					t.Fatalf("%s was unlinked %d times", ref, unlinked[ref])
				}
			}
			view(t, db, func(tx *Tx) error {
				if live := liveBlobs(tx); len(unlinked) != n || len(live) != 3 {
					t.Errorf("%d were unlinked, %v are live", len(unlinked), live)
				}
				if left := countKeys(tx.bolt.Bucket([]byte(droppedBucket))); left != 0 {
					t.Errorf("%d dropped buckets are left", left)
				}
				if tx.bolt.Bucket([]byte(objectsBucket)).Bucket([]byte("bucket_1")) != nil {
					t.Error("the rows of the dropped objects are left")
				}
				return nil
			})
		})
	}
}

// expectGone expects that a bucket and every path to its objects are gone.
func expectGone(t *testing.T, db *DB, id string) {
	t.Helper()
	err := db.Update(func(tx *Tx) error {
		_, getErr := tx.Buckets().Get(id)
		_, objectErr := tx.Object(id, "key/000000")
		objects, _, listErr := tx.NewestObjects(id, "", "", 10)
		counted, countErr := recount(tx, id)
		_, deleteErr := tx.DeleteObject(id, "key/000000", object(id, "", 1).LastModified)
		dropErr := tx.DropBucket(id)
		for i, err := range []error{getErr, objectErr, deleteErr, dropErr} {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%d: got %v, want ErrNotFound", i, err)
			}
		}
		if len(objects) != 0 || counted.ObjectCount != 0 {
			t.Errorf("%d objects are left, %d are listed", counted.ObjectCount, len(objects))
		}
		return errors.Join(listErr, countErr)
	})
	if err != nil {
		t.Error(err)
	}
	if err := db.Update(func(tx *Tx) error { return putOne(tx, object(id, "key/new", 1<<20)) }); !errors.Is(err, ErrNotFound) {
		t.Errorf("PutObject gives %v, want ErrNotFound", err)
	}
}

func TestDropManyBuckets(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	next := 1
	for i := range 5 {
		id := fmt.Sprintf("bucket_%d", i)
		update(t, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket(id)) })
		next = fill(t, db, id, next, 400*i)
	}
	update(t, db, func(tx *Tx) error {
		var err error
		for i := range 5 {
			err = errors.Join(err, tx.DropBucket(fmt.Sprintf("bucket_%d", i)))
		}
		return err
	})
	if unlinked, _ := unlinkAll(t, db, dropBatch); len(unlinked) != next-1 {
		t.Errorf("%d were unlinked, want %d", len(unlinked), next-1)
	}
}

// TestDropInTheTransactionOfAPut: group commit combines the two.
func TestDropInTheTransactionOfAPut(t *testing.T) {
	t.Parallel()
	db := openWithBucket(t)
	update(t, db, func(tx *Tx) error {
		return errors.Join(putOne(tx, object("bucket_1", "key/000000", 1)), tx.DropBucket("bucket_1"))
	})
	expectGone(t, db, "bucket_1")
	if unlinked, _ := unlinkAll(t, db, 10); len(unlinked) != 1 {
		t.Errorf("unlinked %v", unlinked)
	}
}
