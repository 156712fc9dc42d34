package meta

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"holdfast/engine/model"
)

// TestObjectsKeepToTheModel compares buckets with maps under random changes;
// the checker counts objects, versions and blobs after each.
func TestObjectsKeepToTheModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		db, err := Open(filepath.Join(dir, fmt.Sprint(run)))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.bolt.NoSync = true // only what is stored counts here
		m := &objectModel{db: db, buckets: map[string]map[string]model.Object{}}
		t.Repeat(map[string]func(*rapid.T){
			"make": m.make, "put": m.put, "put again": m.put, "delete": m.delete, "drop": m.drop, "unlink": m.unlink, "list": m.list,
			"": m.compare,
		})
	})
}

type objectModel struct {
	db      *DB
	buckets map[string]map[string]model.Object
	made    int
	upload  int
}

func (m *objectModel) change(t *rapid.T, want error, change func(*Tx) error) {
	if err := m.db.Update(change); !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// pick draws a bucket, mostly one that is there.
func (m *objectModel) pick(t *rapid.T) (id string, objects map[string]model.Object) {
	id = rapid.SampledFrom(append(slices.Sorted(maps.Keys(m.buckets)), "bucket_none")).Draw(t, "bucket")
	return id, m.buckets[id]
}

func drawKey(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "a/1", "a/2", "a//", "é"}).Draw(t, "key")
}

func (m *objectModel) make(t *rapid.T) {
	if len(m.buckets) == 3 {
		t.Skip("enough buckets")
	}
	m.made++
	id := fmt.Sprintf("bucket_%d", m.made)
	m.buckets[id] = map[string]model.Object{}
	m.change(t, nil, func(tx *Tx) error { return tx.Buckets().Insert(bucket(id)) })
}

func (m *objectModel) put(t *rapid.T) {
	id, objects := m.pick(t)
	m.upload++
	o := object(id, drawKey(t), m.upload)
	o.SizeBytes = rapid.Int64Range(0, 1<<40).Draw(t, "size")
	var want error
	if objects == nil {
		want = ErrNotFound
	} else {
		objects[o.Key] = o
	}
	m.change(t, want, func(tx *Tx) error { return tx.PutObject(o) })
}

func (m *objectModel) delete(t *rapid.T) {
	id, objects := m.pick(t)
	key := drawKey(t)
	var want error
	if _, there := objects[key]; !there {
		want = ErrNotFound
	}
	delete(objects, key)
	m.change(t, want, func(tx *Tx) error { return tx.DeleteObject(id, key, time.Unix(1, 0)) })
}

func (m *objectModel) drop(t *rapid.T) {
	id, objects := m.pick(t)
	var want error
	if objects == nil {
		want = ErrNotFound
	}
	delete(m.buckets, id)
	m.change(t, want, func(tx *Tx) error { return tx.DropBucket(id) })
}

func (m *objectModel) unlink(t *rapid.T) {
	limit := rapid.IntRange(1, 5).Draw(t, "limit")
	m.change(t, nil, func(tx *Tx) error { return tx.ForgetBlobs(tx.DiscardedBlobs(limit)) })
}

func (m *objectModel) list(t *rapid.T) {
	id, objects := m.pick(t)
	prefix := rapid.SampledFrom([]string{"", "a", "a/", "z"}).Draw(t, "prefix")
	limit := rapid.IntRange(1, 4).Draw(t, "limit")
	want := slices.SortedFunc(maps.Values(objects), func(a, b model.Object) int { return cmp.Compare(b.Version, a.Version) })
	want = slices.DeleteFunc(want, func(o model.Object) bool { return !strings.HasPrefix(o.Key, prefix) })
	var got []model.Object
	if err := m.db.View(func(tx *Tx) error {
		for before, more := "", true; more; {
			page, m, err := tx.NewestObjects(id, prefix, before, limit)
			if err != nil {
				return err
			}
			if more = m; more {
				before = page[len(page)-1].Version
			}
			got = append(got, page...)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
}

func (m *objectModel) compare(t *rapid.T) {
	if err := check(m.db); err != nil {
		t.Fatal(err)
	}
	if err := m.db.View(func(tx *Tx) error {
		for id, objects := range m.buckets {
			b, err := tx.Buckets().Get(id)
			if err != nil || b.ObjectCount != int64(len(objects)) {
				t.Fatalf("%s has %d objects, want %d, %v", id, b.ObjectCount, len(objects), err)
			}
			for key, want := range objects {
				got, err := tx.Object(id, key)
				if diff := gocmp.Diff(want, got); diff != "" || err != nil {
					t.Fatalf("%s %q: %v %s", id, key, err, diff)
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
