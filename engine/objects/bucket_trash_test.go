package objects

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"holdfast/blobstore"
	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

func (s *store) deleteBucket(t testing.TB, bucket string) (until time.Time) {
	t.Helper()
	until, err := s.BucketDelete(s.call(model.ActionBucketDelete), bucket, true)
	if err != nil {
		t.Fatal(err)
	}
	return until
}

func (s *store) restoreBucket(bucket string) error {
	_, err := s.TrashBucketRestore(context.Background(), s.call(model.ActionTrashBucketRestore), bucket)
	return err
}

// trashed returns the content of the trash.
func (s *store) trashed(t testing.TB) (buckets []model.TrashedBucket, objects []model.TrashedObject) {
	t.Helper()
	inTrash, err := s.TrashBucketList(s.call(model.ActionTrashBucketList), core.Filter{}, core.Page{})
	if err != nil {
		t.Fatal(err)
	}
	alone, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), TrashFilter{}, core.Page{})
	if err != nil {
		t.Fatal(err)
	}
	return inTrash.Items, alone.Items
}

// download requests a signed path.
func (s *store) download(path string) error {
	signed, err := url.Parse(path)
	if err != nil {
		return err
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(signed.Path, ObjectPath), "/")
	d, err := s.ObjectDownload(context.Background(), s.call(model.ActionObjectDownload), bucket, key, path)
	if err != nil {
		return err
	}
	return d.Content.Close()
}

func (s *store) blobCount(t testing.TB) (n int) {
	t.Helper()
	if err := s.core.Blobs.Walk(func(blobstore.Ref, int64, time.Time) error {
		n++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// A deleted bucket is inaccessible to everyone, even after a restart, and a restore brings it back unchanged.
func TestBucketTrash(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	bucket := s.bucket(t, "kept")
	want := map[string]string{"small": "small", "large": text(300_000)}
	for key, content := range want {
		s.mustPut(t, bucket, key, content)
	}
	s.mustPut(t, bucket, "deleted before", "x")
	if err := s.delete(bucket, "deleted before"); err != nil {
		t.Fatal(err)
	}
	view, err := s.ObjectGet(s.call(model.ActionObjectGet), bucket, "small")
	if err != nil {
		t.Fatal(err)
	}
	if until := s.deleteBucket(t, bucket); time.Until(until) < 59*time.Minute {
		t.Errorf("it can be brought back until %s", until)
	}
	s.close(t)
	s.open(t)
	list, err := s.BucketList(s.call(model.ActionBucketList), BucketFilter{}, core.Page{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("listed: %+v, %v", list, err)
	}
	for what, err := range map[string]error{
		"the bucket": func() error { _, err := s.BucketGet(s.call(model.ActionBucketGet), bucket); return err }(),
		"its object": func() error {
			_, err := s.ObjectGet(s.call(model.ActionObjectGet), bucket, "small")
			return err
		}(),
		"its signed URL": s.download(view.DownloadPath),
		"an upload":      s.put(bucket, "small", "another"),
		"a deletion":     s.delete(bucket, "small"),
		"deleting it": func() error {
			_, err := s.BucketDelete(s.call(model.ActionBucketDelete), bucket, true)
			return err
		}(),
	} {
		if model.CodeOf(err) != model.CodeNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
	account, err := access.New(s.core).AccountGet(s.call(model.ActionUsageGet))
	if err != nil || account.Totals != (model.Totals{}) {
		t.Errorf("it counts: %+v, %v", account.Totals, err)
	}
	buckets, objects := s.trashed(t)
	if len(buckets) != 1 || buckets[0].ID != bucket || buckets[0].ObjectCount != 2 || len(objects) != 1 {
		t.Fatalf("in the trash: %+v, %+v", buckets, objects)
	}
	_, err = s.TrashObjectRestore(t.Context(), s.call(model.ActionTrashObjectRestore), objects[0].Version)
	if model.CodeOf(err) != model.CodeConflict {
		t.Errorf("an object of a deleted bucket: %v", err)
	}
	stranger := s.call(model.ActionTrashBucketRestore)
	stranger.Organization = "org_other"
	if _, err := s.TrashBucketRestore(t.Context(), stranger, bucket); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("another organization's: %v", err)
	}
	another := s.bucket(t, "kept") // the name is free
	if err := s.restoreBucket(bucket); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("its name is taken: %v", err)
	}
	s.deleteBucket(t, another)
	if err := s.restoreBucket(bucket); err != nil {
		t.Fatal(err)
	}
	if err := s.restoreBucket(bucket); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("brought back twice: %v", err)
	}
	if _, err := s.TrashObjectRestore(t.Context(), s.call(model.ActionTrashObjectRestore), objects[0].Version); err != nil {
		t.Error(err)
	}
	want["deleted before"] = "x"
	s.mustHold(t, bucket, want)
	if err := s.download(view.DownloadPath); err != nil {
		t.Errorf("its signed URL: %v", err)
	}
}

// TestBucketTrashPurge removes expired buckets from the trash, with their bytes, and the buckets of a single
// organization when the operator empties its trash.
func TestBucketTrashPurge(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	older, younger := s.bucket(t, "older"), s.bucket(t, "younger")
	for i := range 5 {
		s.mustPut(t, older, fmt.Sprint(i), text(100_000))
		s.mustPut(t, younger, fmt.Sprint(i), text(100_000))
	}
	pass := func(d time.Duration, want, blobs int) {
		t.Helper()
		s.now.Add(int64(d))
		s.believe()
		if err := s.PurgeBuckets(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.core.RemoveDiscarded(); err != nil {
			t.Fatal(err)
		}
		if buckets, _ := s.trashed(t); len(buckets) != want || s.blobCount(t) != blobs {
			t.Errorf("%s later there are %d buckets, want %d, and %d blobs, want %d", d, len(buckets), want, s.blobCount(t), blobs)
		}
	}
	s.deleteBucket(t, older)
	pass(59*time.Minute, 1, 10)
	s.deleteBucket(t, younger)
	pass(2*time.Minute, 1, 5)
	if err := s.restoreBucket(older); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("after its time: %v", err)
	}
	alone := s.bucket(t, "alone")
	for i := range ExpireBatch + 1 {
		s.mustPut(t, alone, fmt.Sprint(i), "x")
		if err := s.delete(alone, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	stranger := s.call(model.ActionTrashEmpty)
	stranger.Organization = "org_other"
	empty := func(call *model.Call, wantBuckets, wantObjects int) {
		t.Helper()
		buckets, err := s.EmptyBuckets(call)
		objects, errObjects := s.EmptyObjects(call)
		if err := errors.Join(err, errObjects); err != nil || buckets != wantBuckets || objects != wantObjects {
			t.Errorf("%d buckets and %d objects were removed, want %d and %d, %v", buckets, objects, wantBuckets, wantObjects, err)
		}
	}
	empty(stranger, 0, 0)
	empty(s.call(model.ActionTrashEmpty), 1, ExpireBatch+1)
	pass(0, 0, 0)
	entries, _, err := s.core.AuditList(s.call(model.ActionAuditList), core.AuditFilter{Action: string(model.ActionTrashEmpty)}, 1, core.MaxLimit)
	objs := 0
	for _, e := range entries {
		if e.Resource.Type == model.ResourceOrganization && e.Organization == s.org {
			var n int
			fmt.Sscan(e.Details["objects"], &n)
			objs += n
		}
	}
	if err != nil || objs != ExpireBatch+1 {
		t.Errorf("audited are %d objects, %v", objs, err)
	}
}

// An unreadable record does not keep the rest in the trash, and is reported.
func TestPurgeBesideDamage(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	bucket := s.bucket(t, "files")
	for _, key := range []string{"a", "damaged", "b"} {
		s.mustPut(t, bucket, key, key)
		if err := s.delete(bucket, key); err != nil {
			t.Fatal(err)
		}
	}
	_, objects := s.trashed(t)
	s.close(t)
	file, err := bbolt.Open(filepath.Join(s.cfg.DataDir, core.MetadataFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("objects.trash")).Put([]byte(objects[1].Version), []byte("rubbish"))
	}), file.Close()); err != nil {
		t.Fatal(err)
	}
	s.open(t)
	s.now.Add(int64(2 * time.Hour))
	s.believe()
	if err := s.PurgeObjects(t.Context()); err == nil {
		t.Error("nothing is said of the damage")
	}
	if err := s.core.Meta.ViewFlushed(func(tx *meta.Tx) error {
		if n := tx.TrashedObjects().Count(); n != 1 {
			t.Errorf("%d are left", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestRestoreOfABucketThatExpires: a bucket that comes back keeps its objects, also those that are older than it keeps them.
func TestRestoreOfABucketThatExpires(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ days, want int }{{1, 0}, {9, 9}} {
		s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = 240 * time.Hour })
		bucket := s.bucket(t, "expiring")
		if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{ExpireAfterDays: &c.days}); err != nil {
			t.Fatal(err)
		}
		s.mustPut(t, bucket, "k", "x")
		s.deleteBucket(t, bucket)
		s.now.Add(int64(72 * time.Hour))
		s.believe()
		b, err := s.TrashBucketRestore(context.Background(), s.call(model.ActionTrashBucketRestore), bucket)
		if err != nil || b.Expiry.Days() != c.want || b.ExpiryOff != (c.want == 0) {
			t.Errorf("%d days are %d after the restore, %v", c.days, b.Expiry.Days(), err)
		}
		if err := s.ExpireObjects(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.mustHold(t, bucket, map[string]string{"k": "x"})
	}
}

// TestRestoreOfADamagedBucketThatExpires: a bucket comes back also if its oldest object cannot be read.
func TestRestoreOfADamagedBucketThatExpires(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = 240 * time.Hour })
	bucket := s.bucket(t, "expiring")
	s.setExpiry(t, bucket, model.ExpiryRule{Days: 1})
	s.mustPut(t, bucket, "damaged", "x")
	s.mustPut(t, bucket, "k", "x")
	s.damageRecord(t, bucket, "keys", "damaged")
	s.deleteBucket(t, bucket)
	s.pass(t, 3)
	b, err := s.TrashBucketRestore(t.Context(), s.call(model.ActionTrashBucketRestore), bucket)
	if err != nil || !b.ExpiryOff {
		t.Errorf("the bucket came back with %+v, %v", b, err)
	}
	s.pass(t, 1)
	if content, err := s.get(bucket, "k"); err != nil || content != "x" {
		t.Errorf("the object is %q, %v", content, err)
	}
}

// TestRestoredBucketTakesNoName: a bucket from the trash does not take the name from a public bucket or a website that
// another organization has made meanwhile.
func TestRestoredBucketTakesNoName(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) {
		c.ObjectTrashRetention = time.Hour
		c.WebsiteURL = "http://web.test"
	})
	first := s.bucket(t, "shop")
	s.deleteBucket(t, first)
	other := s.otherOrganization(t)
	live, err := s.BucketCreate(other(model.ActionBucketCreate), NewBucket{Name: "shop", Public: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.BucketConfigure(other(model.ActionBucketUpdate), live.ID, "website", func(b *model.Bucket) error {
		b.Website = &model.Website{Index: "index.html"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	means := func(want string) {
		t.Helper()
		for what, find := range map[string]func(*model.Call, string) (model.Bucket, error){"the bucket": s.BucketForEverybody, "the website": s.BucketWebsite} {
			if b, err := find(&model.Call{Actor: model.Anybody()}, "shop"); b.ID != want || err != nil && want != "" {
				t.Errorf("%s is %q, %v; want %q", what, b.ID, err, want)
			}
		}
	}
	means(live.ID)
	if err := s.restoreBucket(first); err != nil {
		t.Fatal(err)
	}
	means(live.ID)
	s.close(t)
	s.open(t)
	means(live.ID)
	if _, err := s.BucketDelete(other(model.ActionBucketDelete), live.ID, true); err != nil {
		t.Fatal(err)
	}
	means("") // the first one is not public
}
