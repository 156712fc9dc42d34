package offsite

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"filippo.io/age"

	"holdfast/blobstore"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// absent is a store that does not have its objects, but for the marker, for some calls.
type absent struct {
	objectstore.Store
	empty              atomic.Bool  // it does not have the marker either
	gets, stats, lists atomic.Int32 // how many
}

func (a *absent) error(act, key string) error {
	return &objectstore.Error{Act: act, Key: key, Store: "test", Kind: objectstore.ErrNotFound}
}

func (a *absent) Get(ctx context.Context, key string, r objectstore.Range) (*objectstore.Object, error) {
	if (a.empty.Load() || key != "holdfast") && a.gets.Add(-1) >= 0 {
		return nil, a.error("read", key)
	}
	return a.Store.Get(ctx, key, r)
}

func (a *absent) Stat(ctx context.Context, key string) (objectstore.Info, error) {
	if a.stats.Add(-1) >= 0 {
		return objectstore.Info{}, a.error("stat", key)
	}
	return a.Store.Stat(ctx, key)
}

func (a *absent) List(ctx context.Context, prefix, after string) iter.Seq2[objectstore.Info, error] {
	if a.lists.Add(-1) >= 0 {
		return func(func(objectstore.Info, error) bool) {}
	}
	return a.Store.List(ctx, prefix, after)
}

// TestFetchNotFound: a file that the store does not find once is fetched all the same, and one that is missing is damage. Nothing is
// missing for good in a store that is empty: it may be a disk that is not mounted.
func TestFetchNotFound(t *testing.T) {
	const always = 1000
	for what, of := range map[string]struct {
		gets, others int32
		empty        bool
	}{
		"not found once":       {1, 0, false},
		"not there for a look": {1, 1, false},
		"missing":              {always, always, false},
		"an empty store":       {always, always, true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &absent{}
				r, ref := storeWithFile(t, store)
				store.empty.Store(of.empty)
				fetchAbsent(t, store, r, ref, of.gets, of.others)
			})
		})
	}
}

// TestFetchWhileTheStoreReturns: what was not found is not missing for good if the store was empty until the end of the second look.
func TestFetchWhileTheStoreReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &absent{}
		r, ref := storeWithFile(t, store)
		dir, file := dataDir(t), fetchFileOf(fetchKey{KindRepository, "packs/00000001.pack"}, ref)
		if err := os.MkdirAll(backupsOf(dir, "db_1"), 0o700); err != nil {
			t.Fatal(err)
		}
		fetchAway := func(gets, others int32) error {
			if err := (fetchList{Format: fetchFormat, Files: []fetchFile{file}}).write(dir, "db_1"); err != nil {
				t.Fatal(err)
			}
			store.gets.Store(gets)
			store.stats.Store(others)
			store.lists.Store(others)
			return fetchDatabase(t.Context(), r, dir, "db_1", func(int64, int64) {})
		}
		if err := fetchAway(1000, 1000); !stream.Damaged(err) {
			t.Fatalf("a file that is missing: %v", err)
		}
		twoLooks := 1000 - store.gets.Load()
		store.empty.Store(true)
		if err := fetchAway(twoLooks, 1000); err == nil || stream.Damaged(err) || !isAway(dir, "db_1") {
			t.Errorf("a file of a store that comes back: %v; still to be fetched: %t", err, isAway(dir, "db_1"))
		}
		if err := fetchAway(0, 0); err != nil || isAway(dir, "db_1") {
			t.Errorf("a file of a store that is back: %v; still to be fetched: %t", err, isAway(dir, "db_1"))
		}
	})
}

// storeWithFile makes a repository in a store, with a file.
func storeWithFile(t *testing.T, store *absent) (*stream.Repository, stream.Reference) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err == nil {
		store.Store, err = objectstore.Open(t.Context(), "file://"+t.TempDir(), objectstore.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := stream.Init(t.Context(), store.Store, time.Now(), identity.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.NewRing(key)
	if err != nil {
		t.Fatal(err)
	}
	r, err := stream.NewRepository(store, keys)
	if err != nil {
		t.Fatal(err)
	}
	w, err := stream.NewWriter(t.Context(), claimEpoch(t, r), stream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := w.Store(t.Context(), bytes.NewReader(make([]byte, 1000)))
	if err == nil {
		err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, ref
}

func fetchAbsent(t *testing.T, store *absent, r *stream.Repository, ref stream.Reference, gets, others int32) {
	t.Helper()
	dir, file := dataDir(t), fetchFileOf(fetchKey{KindRepository, "packs/00000001.pack"}, ref)
	if err := os.MkdirAll(backupsOf(dir, "db_1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (fetchList{Format: fetchFormat, Files: []fetchFile{file}}).write(dir, "db_1"); err != nil {
		t.Fatal(err)
	}
	store.gets.Store(gets)
	store.stats.Store(others)
	store.lists.Store(others)
	done := int64(0)
	err := fetchDatabase(t.Context(), r, dir, "db_1", func(n, _ int64) { done = n })
	if store.empty.Load() {
		if err == nil || stream.Damaged(err) || !isAboutStore(err) || !isAway(dir, "db_1") {
			t.Errorf("of a store that is empty: %v; still to be fetched: %t", err, isAway(dir, "db_1"))
		}
		store.gets.Store(0)
		gets, done = 0, 0
		err = fetchDatabase(t.Context(), r, dir, "db_1", func(n, _ int64) { done = n })
	}
	missing := gets > 1
	if stream.Damaged(err) != missing || err != nil && !missing || isAway(dir, "db_1") {
		t.Errorf("%v; still to be fetched: %t", err, isAway(dir, "db_1"))
	}
	if done != file.Size {
		t.Errorf("%d bytes are fetched", done)
	}
	path, _ := fetchPath(backupsOf(dir, "db_1"), file.Kind, file.Name)
	if info, err := os.Stat(path); (err == nil && info.Size() == file.Size) == missing {
		t.Errorf("the file: %v", err)
	}
}

// TestBodyNotFound: a body that the store does not find is damaged, but not in a store that is empty.
func TestBodyNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &absent{}
		r, _ := storeWithFile(t, store)
		for _, empty := range []bool{false, true} {
			store.empty.Store(empty)
			for _, left := range []*atomic.Int32{&store.gets, &store.stats, &store.lists} {
				left.Store(1000)
			}
			err := damageOf(t.Context(), &connection{store: store, repository: r}, store.error("read", "x"))
			if errors.Is(err, blobstore.ErrDamaged) == empty || empty && (stream.Damaged(err) || !isAboutStore(err)) {
				t.Errorf("in a store that is empty, %t: %v", empty, err)
			}
		}
	})
}
