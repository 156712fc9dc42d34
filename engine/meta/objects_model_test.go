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

// TestObjectsKeepToTheModel compares buckets with maps under random changes; the checker
// verifies objects, versions and blobs after each change.
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
		db.bolt.NoSync = true // only the stored content matters here
		m := &objectModel{db: db, buckets: map[string]map[string]model.Object{}}
		t.Repeat(map[string]func(*rapid.T){
			"make": m.make, "put": m.put, "put again": m.put, "delete": m.delete, "drop": m.drop, "trash bucket": m.trashBucket, "unlink": m.unlink, "list": m.list, "move": m.move, "folder": m.folder, "trash": m.trash,
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

// pick draws a bucket, usually an existing one.
func (m *objectModel) pick(t *rapid.T) (id string, objects map[string]model.Object) {
	id = rapid.SampledFrom(append(slices.Sorted(maps.Keys(m.buckets)), "bucket_none")).Draw(t, "bucket")
	return id, m.buckets[id]
}

func drawKey(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "a/1", "a/2", "a//", "a//b", "é"}).Draw(t, "key")
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
	o.Segment = rapid.Uint32Range(0, 3).Draw(t, "segment")
	o.SizeBytes = rapid.Int64Range(0, 1<<40).Draw(t, "size")
	var want error
	if objects == nil {
		want = ErrNotFound
	} else {
		objects[o.Key] = o
	}
	m.change(t, want, func(tx *Tx) error { return putOne(tx, o) })
}

// trash deletes an object, and then restores or purges it.
func (m *objectModel) trash(t *rapid.T) {
	id, objects := m.pick(t)
	key := drawKey(t)
	o, there := objects[key]
	if !there {
		m.change(t, ErrNotFound, func(tx *Tx) error { return trashOne(tx, id, key, time.Unix(1, 0)) })
		return
	}
	m.change(t, nil, func(tx *Tx) error { return trashOne(tx, id, key, time.Unix(1, 0)) })
	m.compare1(t, id, len(objects)-1)
	if rapid.Bool().Draw(t, "moved") && o.Segment != 0 {
		from := o.Blob
		o.Blob, o.Segment = o.Blob+"'", o.Segment+1
		objects[key] = o
		m.change(t, nil, func(tx *Tx) error { return tx.MoveObject(o, from) })
	}
	if rapid.Bool().Draw(t, "purge") {
		delete(objects, key)
		m.change(t, nil, func(tx *Tx) error { return tx.PurgeObject(o.Version) })
		return
	}
	m.change(t, nil, func(tx *Tx) error {
		_, err := tx.UntrashObject(o.Version, time.Unix(1, 0))
		return err
	})
	o.Absences = append(slices.Clone(o.Absences), model.Absence{From: time.Unix(1, 0), Until: time.Unix(1, 0)})
	o.Absences = o.Absences[max(0, len(o.Absences)-model.MaxAbsences):]
	objects[key] = o
}

// trashBucket deletes a bucket, and then restores or purges it. Meanwhile its contents
// are invisible, and compaction moves its objects.
func (m *objectModel) trashBucket(t *rapid.T) {
	id, objects := m.pick(t)
	if objects == nil {
		m.change(t, ErrNotFound, func(tx *Tx) error { return tx.TrashBucket(id, time.Unix(1, 0)) })
		return
	}
	m.change(t, nil, func(tx *Tx) error { return tx.TrashBucket(id, time.Unix(1, 0)) })
	if err := m.db.ViewFlushed(func(tx *Tx) error {
		if page, _, err := tx.NewestObjects(id, "", "", 1); err != nil || len(page) > 0 {
			t.Fatalf("of a trashed bucket: %v, %v", page, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		o := objects[key]
		m.change(t, ErrNotFound, func(tx *Tx) error { return putOne(tx, o) })
		m.change(t, ErrNotFound, func(tx *Tx) error {
			_, err := tx.DeleteObject(id, key, time.Unix(1, 0))
			return err
		})
	}
	m.move(t)
	if err := check(m.db); err != nil {
		t.Fatal(err)
	}
	switch rapid.SampledFrom([]string{"restore", "purge", "name taken"}).Draw(t, "then") {
	case "purge":
		delete(m.buckets, id)
		m.change(t, nil, func(tx *Tx) error { return tx.PurgeBucket(id) })
		return
	case "name taken":
		m.made++
		another := bucket(fmt.Sprintf("bucket_%d", m.made))
		another.Name = bucket(id).Name
		m.change(t, nil, func(tx *Tx) error { return tx.Buckets().Insert(another) })
		m.change(t, ErrExists, func(tx *Tx) error {
			_, err := tx.UntrashBucket(id, time.Unix(1, 0))
			return err
		})
		m.change(t, nil, func(tx *Tx) error { return tx.DropBucket(another.ID) })
	}
	m.change(t, nil, func(tx *Tx) error {
		_, err := tx.UntrashBucket(id, time.Unix(1, 0))
		return err
	})
}

// compare1 checks that a bucket counts n objects.
func (m *objectModel) compare1(t *rapid.T, id string, n int) {
	if err := check(m.db); err != nil {
		t.Fatal(err)
	}
	if err := m.db.ViewFlushed(func(tx *Tx) error {
		b, err := tx.Buckets().Get(id)
		if b.ObjectCount != int64(n) {
			t.Fatalf("%s has %d objects, want %d", id, b.ObjectCount, n)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// move acts as compaction, including on objects that were replaced since.
func (m *objectModel) move(t *rapid.T) {
	id, objects := m.pick(t)
	key := drawKey(t)
	o, there := objects[key]
	from := o.Blob
	o.Blob, o.Segment = o.Blob+"'", o.Segment+1
	if !there || o.Segment == 1 || rapid.Bool().Draw(t, "stale") {
		o.Bucket, o.Key, from = id, key, "another"
	} else {
		objects[key] = o
	}
	m.change(t, nil, func(tx *Tx) error { return tx.MoveObject(o, from) })
}

// folder compares a level of a bucket, page by page, with the model.
func (m *objectModel) folder(t *rapid.T) {
	id, objects := m.pick(t)
	prefix := rapid.SampledFrom([]string{"", "a", "a/", "a//"}).Draw(t, "prefix")
	delimiter := rapid.SampledFrom([]string{"/", "//", "a/"}).Draw(t, "delimiter")
	limit := rapid.IntRange(1, 3).Draw(t, "limit")
	level := map[string]bool{}
	for key := range objects {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			if before, _, found := strings.Cut(rest, delimiter); found {
				key = prefix + before + delimiter
			}
			level[key] = true
		}
	}
	var got []string
	if err := m.db.ViewFlushed(func(tx *Tx) error {
		for after, more := "", true; more; {
			part, err := tx.ListFolder(id, prefix, delimiter, after, limit)
			if err != nil {
				return err
			}
			for _, o := range part.Objects {
				part.Prefixes = append(part.Prefixes, o.Key)
			}
			if after, more = part.Last, part.More; len(part.Prefixes) > limit || more && len(part.Prefixes) < limit {
				t.Fatalf("a part of %d, limit %d", len(part.Prefixes), limit)
			}
			slices.Sort(part.Prefixes)
			got = append(got, part.Prefixes...)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(slices.Sorted(maps.Keys(level)), got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
}

func (m *objectModel) delete(t *rapid.T) {
	id, objects := m.pick(t)
	key := drawKey(t)
	var want error
	if _, there := objects[key]; !there {
		want = ErrNotFound
	}
	delete(objects, key)
	m.change(t, want, func(tx *Tx) error {
		_, err := tx.DeleteObject(id, key, time.Unix(1, 0))
		return err
	})
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
	if err := m.db.ViewFlushed(func(tx *Tx) error {
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
	if err := m.db.ViewFlushed(func(tx *Tx) error {
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
