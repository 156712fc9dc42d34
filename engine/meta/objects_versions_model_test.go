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

// TestVersionsKeepToTheModel compares the versions of a bucket with lists under random changes; the checker verifies
// tables and indexes after each change.
func TestVersionsKeepToTheModel(t *testing.T) {
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
		m := &versionModel{db: db}
		m.make(t)
		t.Repeat(map[string]func(*rapid.T){
			"put": m.put, "put again": m.put, "mark": m.mark, "delete version": m.deleteVersion, "trash": m.trash,
			"move": m.move, "change": m.change, "page": m.page, "bucket": m.bucket,
			"": m.compare,
		})
	})
}

const versioned = "bucket_1"

type versionModel struct {
	db     *DB
	keys   map[string][]model.Object // newest first
	upload int
}

func (m *versionModel) make(t *rapid.T) {
	m.keys = map[string][]model.Object{}
	m.update(t, nil, func(tx *Tx) error { return tx.Buckets().Insert(bucket(versioned)) })
}

// update runs changes in a batch, as queued ones are, or by themselves.
func (m *versionModel) update(t *rapid.T, want error, change func(*Tx) error) {
	if err := m.db.Update(func(tx *Tx) error {
		if tx.batch != nil || !rapid.Bool().Draw(t, "batch") {
			return change(tx)
		}
		tx.batch = newBatch()
		defer func() { tx.batch = nil }()
		if err := change(tx); err != nil {
			return err
		}
		return tx.flushBatch()
	}); !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

func (m *versionModel) next(t *rapid.T) model.Object {
	m.upload++
	o := object(versioned, drawKey(t), m.upload)
	o.Segment = rapid.Uint32Range(0, 3).Draw(t, "segment")
	o.Versioned = rapid.Bool().Draw(t, "versioned")
	o.Lock = drawLock(t)
	return o
}

func drawLock(t *rapid.T) *model.ObjectLock {
	return rapid.SampledFrom([]*model.ObjectLock{
		nil, {}, {Hold: true}, {Mode: model.LockGovernance, Until: time.Unix(10, 0).UTC()}, {Mode: model.LockCompliance, Until: time.Unix(20, 0).UTC(), Hold: true},
	}).Draw(t, "lock")
}

// add makes o the latest version in the model. It returns the version that it replaces.
func (m *versionModel) add(o model.Object) (removed model.Object) {
	if !o.Versioned {
		removed = m.remove(o.Key, model.NullVersion)
	}
	if before := m.keys[o.Key]; len(before) > 0 && before[0].NoncurrentAt.IsZero() {
		before[0].NoncurrentAt = o.LastModified
	}
	m.keys[o.Key] = slices.Insert(m.keys[o.Key], 0, o)
	return removed
}

func (m *versionModel) remove(key, id string) (removed model.Object) {
	m.keys[key] = slices.DeleteFunc(m.keys[key], func(o model.Object) bool {
		if o.VersionID() == id {
			removed = o
		}
		return o.VersionID() == id
	})
	return removed
}

func (m *versionModel) put(t *rapid.T) { m.putOne(t, m.next(t)) }

func (m *versionModel) mark(t *rapid.T) {
	o := m.next(t)
	o.Blob, o.Segment, o.SizeBytes, o.DeleteMarker, o.Lock = "", 0, 0, true, nil
	m.putOne(t, o)
}

func (m *versionModel) putOne(t *rapid.T, o model.Object) {
	want := m.add(o)
	m.update(t, nil, func(tx *Tx) error {
		got, err := tx.PutObject(o)
		if got.NoncurrentAt = want.NoncurrentAt; gocmp.Diff(want, got) != "" {
			t.Fatalf("%+v is removed, want %+v", got, want)
		}
		return err
	})
}

// pick draws a version, which may be missing.
func (m *versionModel) pick(t *rapid.T) (key, id string, found model.Object) {
	key = drawKey(t)
	ids := []string{model.NullVersion, fmt.Sprintf("%026d", 1<<20)}
	for _, o := range m.keys[key] {
		ids = append(ids, o.VersionID())
	}
	id = rapid.SampledFrom(ids).Draw(t, "version")
	for _, o := range m.keys[key] {
		if o.VersionID() == id {
			found = o
		}
	}
	return key, id, found
}

func missingIf(o model.Object) error {
	if o.Key == "" {
		return ErrNotFound
	}
	return nil
}

func (m *versionModel) deleteVersion(t *rapid.T) {
	key, id, o := m.pick(t)
	m.update(t, missingIf(o), func(tx *Tx) error {
		_, err := tx.DeleteVersion(versioned, key, id, time.Unix(1, 0))
		return err
	})
	m.remove(key, id)
	m.promote(key)
}

func (m *versionModel) promote(key string) {
	if left := m.keys[key]; len(left) > 0 {
		left[0].NoncurrentAt = time.Time{}
	}
}

// trash deletes a version, changes others, and restores or purges it.
func (m *versionModel) trash(t *rapid.T) {
	key, id, o := m.pick(t)
	if o.Blob == "" {
		return
	}
	m.update(t, nil, func(tx *Tx) error {
		old, err := tx.DeleteVersion(versioned, key, id, time.Unix(1, 0))
		return errors.Join(err, tx.KeepDeleted(old, time.Unix(1, 0)))
	})
	m.remove(key, id)
	m.promote(key)
	if rapid.Bool().Draw(t, "more") {
		m.put(t)
		m.mark(t)
	}
	null := slices.ContainsFunc(m.keys[key], func(n model.Object) bool { return !n.Versioned && !n.DeleteMarker && !o.Versioned })
	if rapid.Bool().Draw(t, "purge") {
		m.update(t, nil, func(tx *Tx) error { return tx.PurgeObject(o.Version) })
		return
	}
	restore := func(tx *Tx) error {
		_, err := tx.UntrashObject(o.Version, time.Unix(2, 0).UTC())
		return err
	}
	if null {
		m.update(t, ErrExists, restore)
		m.update(t, nil, func(tx *Tx) error { return tx.PurgeObject(o.Version) })
		return
	}
	m.update(t, nil, restore)
	if !o.Versioned {
		m.remove(key, model.NullVersion) // a delete marker
		m.promote(key)
	}
	i, _ := slices.BinarySearchFunc(m.keys[key], o, func(a, b model.Object) int { return cmp.Compare(b.Version, a.Version) })
	o.NoncurrentAt = time.Time{}
	o.Absences = append(slices.Clone(o.Absences), model.Absence{From: time.Unix(1, 0).UTC(), Until: time.Unix(2, 0).UTC()})
	o.Absences = o.Absences[max(0, len(o.Absences)-model.MaxAbsences):]
	if i > 0 {
		o.NoncurrentAt = time.Unix(2, 0).UTC()
	} else if left := m.keys[key]; len(left) > 0 && left[0].NoncurrentAt.IsZero() {
		left[0].NoncurrentAt = time.Unix(2, 0).UTC()
	}
	m.keys[key] = slices.Insert(m.keys[key], i, o)
}

// move acts as compaction.
func (m *versionModel) move(t *rapid.T) {
	key, id, o := m.pick(t)
	if o.Blob == "" || o.Segment == 0 {
		return
	}
	from := o.Blob
	o.Blob, o.Segment = o.Blob+"'", o.Segment+1
	m.replace(key, id, o)
	moved := o
	moved.NoncurrentAt = time.Time{} // the note of a move may be older
	m.update(t, nil, func(tx *Tx) error { return tx.MoveObject(moved, from) })
}

func (m *versionModel) replace(key, id string, o model.Object) {
	for i := range m.keys[key] {
		if m.keys[key][i].VersionID() == id {
			m.keys[key][i] = o
		}
	}
}

func (m *versionModel) change(t *rapid.T) {
	key, id, o := m.pick(t)
	lock := drawLock(t)
	m.update(t, missingIf(o), func(tx *Tx) error {
		_, err := tx.ChangeVersion(versioned, key, id, func(o *model.Object) error {
			o.ContentType, o.Lock = "text/plain", lock
			return nil
		})
		return err
	})
	o.ContentType, o.Lock = "text/plain", lock
	m.replace(key, id, o)
}

// page compares a list of versions, page by page, with the model.
func (m *versionModel) page(t *rapid.T) {
	prefix := rapid.SampledFrom([]string{"", "a", "a/", "a//"}).Draw(t, "prefix")
	delimiter := rapid.SampledFrom([]string{"", "/", "//", "a/"}).Draw(t, "delimiter")
	limit := rapid.IntRange(1, 4).Draw(t, "limit")
	var want, got []string
	for _, key := range slices.Sorted(maps.Keys(m.keys)) {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if folder, inside := folderOf(key, prefix, delimiter); inside {
			if len(m.keys[key]) > 0 && !slices.Contains(want, folder) {
				want = append(want, folder)
			}
			continue
		}
		for i, o := range m.keys[key] {
			want = append(want, fmt.Sprint(key, " ", o.Version, " ", i == 0))
		}
	}
	m.view(t, func(tx *Tx) error {
		for f := (VersionFolder{More: true}); f.More; {
			var err error
			if f, err = tx.ListVersions(versioned, prefix, delimiter, f.LastKey, f.LastVersion, limit); err != nil {
				return err
			}
			if n := len(f.Versions) + len(f.Prefixes); n > limit || f.More && n < limit {
				t.Fatalf("a page of %d, limit %d", n, limit)
			}
			for _, v := range f.Versions {
				got = append(got, fmt.Sprint(v.Key, " ", v.Version, " ", v.Latest))
			}
			got = append(got, f.Prefixes...)
		}
		return nil
	})
	slices.Sort(want)
	slices.Sort(got) // a page has versions and prefixes apart
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

// bucket deletes the bucket, and restores it or makes a new one.
func (m *versionModel) bucket(t *rapid.T) {
	switch rapid.SampledFrom([]string{"restore", "purge", "drop"}).Draw(t, "bucket") {
	case "restore":
		m.update(t, nil, func(tx *Tx) error { return tx.TrashBucket(versioned, time.Unix(1, 0)) })
		m.move(t)
		m.update(t, nil, func(tx *Tx) error {
			_, err := tx.UntrashBucket(versioned, time.Unix(1, 0))
			return err
		})
		return
	case "purge":
		m.db.Update(func(tx *Tx) error { return tx.TrashBucket(versioned, time.Unix(1, 0)) })
		m.change1(t, func(tx *Tx) error { return tx.PurgeBucket(versioned) })
	case "drop":
		m.change1(t, func(tx *Tx) error { return tx.DropBucket(versioned) })
	}
	m.change1(t, func(tx *Tx) error { return tx.ForgetBlobs(tx.DiscardedBlobs(5)) })
	m.make(t)
}

// change1 runs a change that drops a bucket, which no batch does.
func (m *versionModel) change1(t *rapid.T, change func(*Tx) error) {
	if err := m.db.Update(change); err != nil {
		t.Fatal(err)
	}
}

func (m *versionModel) view(t *rapid.T, read func(*Tx) error) {
	if err := m.db.ViewFlushed(read); err != nil {
		t.Fatal(err)
	}
}

func (m *versionModel) compare(t *rapid.T) {
	if err := check(m.db); err != nil {
		t.Fatal(err)
	}
	m.view(t, func(tx *Tx) error {
		at, locked := time.Unix(15, 0), false
		for key, versions := range m.keys {
			for i, want := range versions {
				locked = locked || want.Lock.Retains(at) || want.Lock != nil && want.Lock.Hold
				got, err := tx.ObjectVersion(versioned, key, want.VersionID())
				if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
					t.Fatalf("%q %s: %v %s", key, want.VersionID(), err, diff)
				}
				if latest, err := tx.LatestVersion(versioned, key); i == 0 && (err != nil || latest.Version != want.Version) {
					t.Fatalf("the latest of %q is %+v, %v", key, latest, err)
				}
			}
			if _, err := tx.Object(versioned, key); errors.Is(err, ErrNotFound) != (len(versions) == 0 || versions[0].DeleteMarker) {
				t.Fatalf("%q: %v, versions %+v", key, err, versions)
			}
		}
		if found, err := tx.LockedVersion(versioned, at); (err == nil) != locked || err != nil && !errors.Is(err, ErrNotFound) {
			t.Fatalf("locked: %+v, %v, want %v", found, err, locked)
		}
		return nil
	})
}
