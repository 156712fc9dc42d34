package meta

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"holdfast/engine/model"
)

func bucket(id string) model.Bucket {
	return model.Bucket{ID: id, Organization: "org_1", Project: "proj_1", Name: id}
}

func putOne(tx *Tx, o model.Object) error {
	_, err := tx.PutObject(o)
	return err
}

// trashOne moves the current object under key to the trash.
func trashOne(tx *Tx, bucket, key string, at time.Time) error {
	old, err := tx.DeleteObject(bucket, key, at)
	if err != nil {
		return err
	}
	return tx.KeepDeleted(old, at)
}

// object returns the n-th object ever uploaded.
func object(bucket, key string, n int) model.Object {
	return model.Object{
		Bucket: bucket, Key: key, Version: fmt.Sprintf("%026d", n), Blob: fmt.Sprintf("blob_%d", n),
		SizeBytes: int64(n), LastModified: time.Unix(int64(n), 0).UTC(),
	}
}

func openWithBucket(t testing.TB) *DB {
	t.Helper()
	db := openTest(t)
	update(t, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket("bucket_1")) })
	return db
}

func put(t testing.TB, db *DB, objects ...model.Object) {
	t.Helper()
	update(t, db, func(tx *Tx) error {
		for _, o := range objects {
			if err := putOne(tx, o); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestPutAndGetObject(t *testing.T) {
	t.Parallel()
	db := openWithBucket(t)
	// The objects are distinct, however similar their keys.
	keys := []string{"a", "a/", "a/b", "a//b", "/a", "A", "é", "e\u0301", strings.Repeat("k", model.MaxObjectKey)}
	for i, key := range keys {
		put(t, db, object("bucket_1", key, i+1))
	}
	view(t, db, func(tx *Tx) error {
		for i, key := range keys {
			got, err := tx.Object("bucket_1", key)
			if diff := gocmp.Diff(object("bucket_1", key, i+1), got); diff != "" || err != nil {
				t.Errorf("%.20q: %v %s", key, err, diff)
			}
		}
		for _, absent := range [][2]string{{"bucket_1", "b"}, {"bucket_1", ""}, {"bucket_1", "a/b/"}, {"bucket_2", "a"}, {"", "a"}} {
			if _, err := tx.Object(absent[0], absent[1]); !errors.Is(err, ErrNotFound) {
				t.Errorf("%q: got %v, want ErrNotFound", absent, err)
			}
		}
		b, err := tx.Buckets().Get("bucket_1")
		if b.ObjectCount != 9 || b.SizeBytes != 45 || !b.UpdatedAt.Equal(time.Unix(9, 0)) {
			t.Errorf("the bucket has %+v", b)
		}
		return err
	})
}

func TestPutObjectReplaces(t *testing.T) {
	t.Parallel()
	db := openWithBucket(t)
	put(t, db, object("bucket_1", "a", 1), object("bucket_1", "a", 2))
	put(t, db, object("bucket_1", "a", 3))
	view(t, db, func(tx *Tx) error {
		objects, more, err := tx.NewestObjects("bucket_1", "", "", 10)
		if diff := gocmp.Diff([]model.Object{object("bucket_1", "a", 3)}, objects); diff != "" || more || err != nil {
			t.Errorf("%v %v %s", err, more, diff)
		}
		if got := tx.DiscardedBlobs(10); !slices.Equal(got, []string{"blob_1", "blob_2"}) {
			t.Errorf("discarded are %v", got)
		}
		if got := liveBlobs(tx); !slices.Equal(got, []string{"blob_3"}) {
			t.Errorf("live are %v", got)
		}
		return nil
	})
}

// TestPutObjectAgainKeepsItsBlob: rewriting a record with the same bytes must not unlink
// them.
func TestPutObjectAgainKeepsItsBlob(t *testing.T) {
	t.Parallel()
	db := openWithBucket(t)
	put(t, db, object("bucket_1", "a", 1))
	again := object("bucket_1", "a", 1)
	again.ContentType = "text/plain"
	put(t, db, again)
	view(t, db, func(tx *Tx) error {
		if got := tx.DiscardedBlobs(10); len(got) != 0 {
			t.Errorf("discarded are %v", got)
		}
		return nil
	})
}

func TestObjectsNeedTheirBucket(t *testing.T) {
	t.Parallel()
	db := openWithBucket(t)
	if err := db.Update(func(tx *Tx) error { return putOne(tx, object("bucket_2", "a", 1)) }); !errors.Is(err, ErrNotFound) {
		t.Errorf("PutObject gives %v, want ErrNotFound", err)
	}
	for _, absent := range [][2]string{{"bucket_1", "a"}, {"bucket_2", "a"}} {
		err := db.Update(func(tx *Tx) error {
			_, err := tx.DeleteObject(absent[0], absent[1], time.Now())
			return err
		})
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("DeleteObject of %v gives %v, want ErrNotFound", absent, err)
		}
	}
	view(t, db, func(tx *Tx) error {
		objects, more, err := tx.NewestObjects("bucket_2", "", "", 10)
		counted, recountErr := recount(tx, "bucket_2")
		if len(objects) != 0 || more || counted.ObjectCount != 0 || counted.SizeBytes != 0 {
			t.Errorf("a bucket that is not there has %v, %v, %+v", objects, more, counted)
		}
		return errors.Join(err, recountErr)
	})
}

func TestVersionToNowhereIsDamage(t *testing.T) {
	t.Parallel()
	db, err := Open(filepath.Join(t.TempDir(), "meta.db")) // not checked: it is damaged
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	update(t, db, func(tx *Tx) error {
		if err := errors.Join(tx.Buckets().Insert(bucket("bucket_1")), putOne(tx, object("bucket_1", "a", 1))); err != nil {
			return err
		}
		keys, _ := tx.objectBuckets("bucket_1")
		return keys.Delete([]byte("a"))
	})
	view(t, db, func(tx *Tx) error {
		if _, _, err := tx.NewestObjects("bucket_1", "", "", 10); !isCorrupt(err) {
			t.Errorf("got %v, want a CorruptError", err)
		}
		return nil
	})
	if check(db) == nil {
		t.Error("the checker finds nothing")
	}
}

func TestNewestObjects(t *testing.T) {
	t.Parallel()
	db := openWithBucket(t)
	update(t, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket("bucket_2")) })
	for i, key := range []string{"b", "a/1", "a", "a/2", "c", "a/3"} {
		put(t, db, object("bucket_1", key, i+1), object("bucket_2", "other/"+key, i+1))
	}
	for _, tt := range []struct {
		prefix, before string
		limit          int
		want           string
		more           bool
	}{
		{"", "", 10, "a/3 c a/2 a a/1 b", false},
		{"", "", 6, "a/3 c a/2 a a/1 b", false},
		{"", "", 5, "a/3 c a/2 a a/1", true},
		{"", "", 1, "a/3", true},
		{"a/", "", 10, "a/3 a/2 a/1", false},
		{"a/", "", 3, "a/3 a/2 a/1", false},
		{"a/", "", 2, "a/3 a/2", true},
		{"a", "", 10, "a/3 a/2 a a/1", false},
		{"a/", fmt.Sprintf("%026d", 4), 10, "a/1", false},
		{"", fmt.Sprintf("%026d", 4), 10, "a a/1 b", false},
		{"", fmt.Sprintf("%026dx", 3), 10, "a a/1 b", false}, // a nonexistent version
		{"", fmt.Sprintf("%026d", 1), 10, "", false},
		{"", "0", 10, "", false},
		{"", "\xff", 10, "a/3 c a/2 a a/1 b", false},
		{"z", "", 10, "", false},
		{"A", "", 10, "", false},
		{"1", "", 10, "", false}, // only within a key
		{"a/1/", "", 10, "", false},
		{"other", "", 10, "", false},
		{"\xff", "", 10, "", false},
	} {
		view(t, db, func(tx *Tx) error {
			objects, more, err := tx.NewestObjects("bucket_1", tt.prefix, tt.before, tt.limit)
			var keys []string
			for _, o := range objects {
				keys = append(keys, o.Key)
			}
			if got := strings.Join(keys, " "); got != tt.want || more != tt.more || err != nil {
				t.Errorf("%d of %q before %q: got %q, %v, %v, want %q, %v", tt.limit, tt.prefix, tt.before, got, more, err, tt.want, tt.more)
			}
			return nil
		})
	}
}

// TestListFolderInParts: the pages of a level add up to the whole level, whatever the
// delimiter; one of several characters may begin in the prefix.
func TestListFolderInParts(t *testing.T) {
	t.Parallel()
	db := openWithBucket(t)
	for i, key := range []string{"a/", "a//", "a///", "a///b", "a//b", "a//b//", "a//b//c", "a/b", "aa", "aaa", "aab", "b//"} {
		put(t, db, object("bucket_1", key, i+1))
	}
	list := func(tx *Tx, prefix, delimiter string, limit int) (got []string) {
		for after, more := "", true; more; {
			part, err := tx.ListFolder("bucket_1", prefix, delimiter, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range part.Objects {
				got = append(got, o.Key)
			}
			for _, folder := range part.Prefixes {
				got = append(got, folder+"*")
			}
			after, more = part.Last, part.More
		}
		slices.Sort(got)
		return got
	}
	view(t, db, func(tx *Tx) error {
		for _, prefix := range []string{"", "a", "a/", "a//", "a//b", "b"} {
			for _, delimiter := range []string{"/", "//", "///", "a", "aa"} {
				whole := list(tx, prefix, delimiter, 100)
				if parts := list(tx, prefix, delimiter, 1); !slices.Equal(parts, whole) {
					t.Errorf("prefix %q, delimiter %q: %q, want %q", prefix, delimiter, parts, whole)
				}
			}
		}
		want := []string{"a/", "a//", "a///*", "a//b", "a//b//*", "a/b"}
		if got := list(tx, "a/", "//", 1); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		return nil
	})
}

// TestListingIsStableUnderWrites pages through a bucket that changes between pages: an
// object that exists throughout is listed exactly once.
func TestListingIsStableUnderWrites(t *testing.T) {
	t.Parallel()
	db := openWithBucket(t)
	const stay = 40
	n := 0
	for i := range stay {
		n += 2
		put(t, db, object("bucket_1", fmt.Sprintf("stay/%d", i), n-1), object("bucket_1", fmt.Sprintf("go/%d", i), n))
	}
	seen := map[string]int{}
	before, page := "", 0
	for more := true; more; page++ {
		var objects []model.Object
		view(t, db, func(tx *Tx) (err error) {
			objects, more, err = tx.NewestObjects("bucket_1", "", before, 3)
			return err
		})
		for _, o := range objects {
			seen[o.Key]++
		}
		before = objects[len(objects)-1].Version
		// The cursor's object is removed; others are replaced and added.
		update(t, db, func(tx *Tx) error {
			if last := objects[len(objects)-1].Key; strings.HasPrefix(last, "go/") {
				if _, err := tx.DeleteObject("bucket_1", last, time.Now()); err != nil {
					return err
				}
			}
			n += 2
			return errors.Join(
				putOne(tx, object("bucket_1", fmt.Sprintf("go/%d", page), n-1)),
				putOne(tx, object("bucket_1", fmt.Sprintf("come/%d", page), n)))
		})
	}
	for i := range stay {
		if key := fmt.Sprintf("stay/%d", i); seen[key] != 1 {
			t.Errorf("%s was seen %d times", key, seen[key])
		}
	}
	for key, times := range seen {
		if times > 1 || strings.HasPrefix(key, "come/") {
			t.Errorf("%s was seen %d times", key, times)
		}
	}
}

// TestTrashedBefore deletes objects in a different order than they were uploaded.
func TestTrashedBefore(t *testing.T) {
	t.Parallel()
	db := openWithBucket(t)
	start := time.Unix(1_700_000_000, 0)
	deleted := []string{"e", "a", "d", "b", "c"} // one second apart
	for i, key := range []string{"a", "b", "c", "d", "e"} {
		put(t, db, object("bucket_1", key, i+1))
	}
	update(t, db, func(tx *Tx) (err error) {
		for i, key := range deleted {
			err = errors.Join(err, trashOne(tx, "bucket_1", key, start.Add(time.Duration(i)*time.Second)))
		}
		return err
	})
	view(t, db, func(tx *Tx) error {
		for _, c := range []struct {
			after time.Duration
			limit int
			want  []string
		}{
			{0, 9, nil},
			{1, 9, deleted[:1]},
			{2 * time.Second, 9, deleted[:2]},
			{time.Hour, 9, deleted},
			{time.Hour, 3, deleted[:3]},
			{time.Hour, 0, nil},
		} {
			var got []string
			objects, err := tx.TrashedObjects().Before(ByDeletion, DeletionKey(start.Add(c.after)), c.limit)
			for _, o := range objects {
				got = append(got, o.Key)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%d before %s: %q, %v; want %q", c.limit, c.after, got, err, c.want)
			}
		}
		return nil
	})
}
