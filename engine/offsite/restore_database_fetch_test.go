package offsite

import (
	"bytes"
	"context"
	"iter"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// absent is a store that does not have its objects for some calls.
type absent struct {
	objectstore.Store
	gets, stats, lists atomic.Int32 // how many
}

func (a *absent) error(act, key string) error {
	return &objectstore.Error{Act: act, Key: key, Store: "test", Kind: objectstore.ErrNotFound}
}

func (a *absent) Get(ctx context.Context, key string, r objectstore.Range) (*objectstore.Object, error) {
	if a.gets.Add(-1) >= 0 {
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

// TestFetchNotFound: a file that the store does not find once is fetched all the same, and one that is missing is damage.
func TestFetchNotFound(t *testing.T) {
	for what, calls := range map[string]struct{ gets, others int32 }{
		"not found once":       {1, 0},
		"not there for a look": {1, 1},
		"missing":              {1000, 1000},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fetchAbsent(t, calls.gets, calls.others) })
		})
	}
}

func fetchAbsent(t *testing.T, gets, others int32) {
	inner, err := objectstore.Open(t.Context(), "file://"+t.TempDir(), objectstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.NewRing(sealed.NewKey(1))
	if err != nil {
		t.Fatal(err)
	}
	store := &absent{Store: inner}
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
	err = fetchDatabase(t.Context(), r, dir, "db_1", func(n, _ int64) { done = n })
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
