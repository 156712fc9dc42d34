package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

func (s *store) setVersioning(bucket string, to model.Versioning) error {
	_, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{Versioning: &to})
	return err
}

// versioned returns a bucket that keeps versions.
func (s *store) versioned(t testing.TB, name string) string {
	t.Helper()
	bucket := s.bucket(t, name)
	if err := s.setVersioning(bucket, model.VersioningEnabled); err != nil {
		t.Fatal(err)
	}
	return bucket
}

// versions returns what a bucket has of a key, the newest first: contents, and "-" for a delete marker, with "null " for
// a null version.
func (s *store) versions(t testing.TB, bucket, key string) (all []string, ids []string) {
	t.Helper()
	page, err := s.VersionList(s.call(model.ActionObjectList), bucket, key, "", "", "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range page.Versions {
		content := "-"
		if !v.DeleteMarker {
			if content, err = s.getVersion(bucket, v.Key, v.VersionID()); err != nil {
				t.Fatal(err)
			}
		}
		if !v.Versioned {
			content = "null " + content
		}
		if v.Latest != (i == 0) {
			t.Errorf("%q is the latest: %v", content, v.Latest)
		}
		all, ids = append(all, content), append(ids, v.VersionID())
	}
	return all, ids
}

func (s *store) getVersion(bucket, key, id string) (string, error) {
	d, err := s.openObject(context.Background(), bucket, key, id)
	if err != nil {
		return "", err
	}
	defer d.Content.Close()
	content := make([]byte, d.SizeBytes)
	_, err = d.Content.ReadAt(content, 0)
	return string(content), err
}

func (s *store) deleteVersion(bucket, key, id string) error {
	_, err := s.ObjectDelete(context.Background(), s.call(model.ActionObjectDelete), Deletion{Bucket: bucket, Key: key, Version: id})
	return err
}

func (s *store) wantVersions(t testing.TB, bucket, key string, want ...string) (ids []string) {
	t.Helper()
	got, ids := s.versions(t, bucket, key)
	if !slices.Equal(got, want) {
		t.Errorf("the versions are %.300q, want %.300q", got, want)
	}
	current := ""
	if len(want) > 0 {
		current = strings.TrimPrefix(want[0], "null ")
	}
	if got, err := s.get(bucket, key); current == "" || current == "-" {
		if model.CodeOf(err) != model.CodeNotFound {
			t.Errorf("the deleted object: %q, %v", got, err)
		}
	} else if err != nil || got != current {
		t.Errorf("the object is %q, %v, want %q", got, err, current)
	}
	return ids
}

// TestVersions overwrites and deletes an object in every state of versioning. After each step the appliance starts
// again, in turn with and without the metadata of the step.
func TestVersions(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket, steps := s.bucket(t, "files"), 0
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if steps++; steps%2 == 0 {
			s.close(t)
			s.open(t)
		}
	}
	for round := range 2 {
		if round == 1 { // the other half of the steps
			bucket, steps = s.bucket(t, "again"), 1
		}
		do(s.put(bucket, "k", "before"))
		do(s.setVersioning(bucket, model.VersioningEnabled))
		do(s.put(bucket, "k", "one"))
		do(s.put(bucket, "k", "two"))
		s.wantVersions(t, bucket, "k", "two", "one", "null before")
		do(s.delete(bucket, "k"))
		ids := s.wantVersions(t, bucket, "k", "-", "two", "one", "null before")
		if !slices.IsSortedFunc(ids[:3], func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("the ids are not in order of time: %q", ids)
		}
		do(s.deleteVersion(bucket, "k", ids[0])) // the object is back
		s.wantVersions(t, bucket, "k", "two", "one", "null before")
		do(s.deleteVersion(bucket, "k", ids[1]))
		s.wantVersions(t, bucket, "k", "one", "null before")
		do(s.setVersioning(bucket, model.VersioningSuspended))
		do(s.put(bucket, "k", "suspended"))
		s.wantVersions(t, bucket, "k", "null suspended", "one")
		do(s.put(bucket, "k", "again"))
		s.wantVersions(t, bucket, "k", "null again", "one")
		do(s.delete(bucket, "k"))
		s.wantVersions(t, bucket, "k", "null -", "one")
		do(s.setVersioning(bucket, model.VersioningEnabled))
		do(s.put(bucket, "k", strings.Repeat("x", 100_000)))
		s.wantVersions(t, bucket, "k", strings.Repeat("x", 100_000), "null -", "one")
		do(s.deleteVersion(bucket, "k", model.NullVersion))
		do(s.deleteVersion(bucket, "k", ids[2]))
		s.wantVersions(t, bucket, "k", strings.Repeat("x", 100_000))
		if err := s.deleteVersion(bucket, "k", ids[2]); !errors.Is(err, ErrNoVersion) {
			t.Errorf("deleted again: %v", err)
		}
		if _, err := s.getVersion(bucket, "k", model.NullVersion); !errors.Is(err, ErrNoVersion) {
			t.Errorf("a null version that is gone: %v", err)
		}
	}
	if err := s.setVersioning(bucket, model.VersioningOff); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("turned off: %v", err)
	}
	b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket)
	if err != nil || b.ObjectCount != 1 || b.SizeBytes != 100_000 || b.NoncurrentCount != 0 {
		t.Errorf("the bucket counts %+v, %v", b, err)
	}
	if got := s.blobCount(t); got != 2 {
		t.Errorf("%d large bodies are left, want one of each bucket", got)
	}
}

// TestVersionsAfterTheClockWasSetBack: the order of versions is that of the writes.
func TestVersionsAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.versioned(t, "files")
	s.mustPut(t, bucket, "k", "one")
	s.now.Add(int64(-time.Hour))
	s.close(t)
	s.open(t)
	s.mustPut(t, bucket, "k", "two")
	if err := s.delete(bucket, "k"); err != nil {
		t.Fatal(err)
	}
	s.close(t)
	s.open(t)
	s.mustPut(t, bucket, "k", "three")
	s.wantVersions(t, bucket, "k", "three", "-", "two", "one")
}

// TestVersionTrash: what is deleted for good can be restored from the trash, to its place.
func TestVersionTrash(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	bucket := s.versioned(t, "files")
	for _, content := range []string{"one", "two", "three"} {
		s.mustPut(t, bucket, "k", content)
	}
	if err := s.delete(bucket, "k"); err != nil {
		t.Fatal(err)
	}
	ids := s.wantVersions(t, bucket, "k", "-", "three", "two", "one")
	if _, trashed := s.trashed(t); len(trashed) != 0 {
		t.Errorf("a delete marker moved %+v to the trash", trashed)
	}
	for _, id := range ids[:3] {
		if err := s.deleteVersion(bucket, "k", id); err != nil {
			t.Fatal(err)
		}
	}
	s.wantVersions(t, bucket, "k", "one")
	_, trashed := s.trashed(t)
	if len(trashed) != 2 {
		t.Fatalf("in the trash: %+v", trashed)
	}
	for _, o := range trashed {
		if _, err := s.TrashObjectRestore(t.Context(), s.call(model.ActionTrashObjectRestore), o.Version); err != nil {
			t.Error(err)
		}
	}
	s.wantVersions(t, bucket, "k", "three", "two", "one")
}

// TestVersionExpiry: the age of a bucket gives objects a delete marker.
func TestVersionExpiry(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket, days := s.versioned(t, "files"), 1
	if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{ExpireAfterDays: &days}); err != nil {
		t.Fatal(err)
	}
	s.mustPut(t, bucket, "k", "one")
	s.now.Add(int64(25 * time.Hour))
	s.believe()
	for range 2 {
		if err := s.ExpireObjects(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantVersions(t, bucket, "k", "-", "one")
	}
}

// TestVersionsOfLostBytes: of the versions of a key those stay whose bytes are there.
func TestVersionsOfLostBytes(t *testing.T) {
	s := openStore(t)
	s.CopyWith(func(blobstore.Ref) bool { return false })
	bucket := s.versioned(t, "files")
	for _, content := range []string{"one", strings.Repeat("x", 100_000), strings.Repeat("x", 200_000)} {
		s.mustPut(t, bucket, "k", content)
	}
	if err := s.core.Meta.Flush(); err != nil {
		t.Fatal(err)
	}
	s.close(t)
	if err := os.RemoveAll(filepath.Join(s.cfg.DataDir, "blobs", "blobs")); err != nil {
		t.Fatal(err)
	}
	s.open(t)
	if n, err := s.DropLost(t.Context(), time.Now().Add(-time.Hour)); n != 2 || err != nil {
		t.Errorf("%d were dropped, %v", n, err)
	}
	s.wantVersions(t, bucket, "k", "one")
}

// TestVersionUpkeep: the scrub finds damage in versions that are not current, and compaction moves them.
func TestVersionUpkeep(t *testing.T) {
	s := openStore(t)
	bucket := s.versioned(t, "files")
	s.mustPut(t, bucket, "k", strings.Repeat("x", 100_000))
	s.mustPut(t, bucket, "k", "two")
	s.mustPut(t, bucket, "k", "three")
	ids := s.wantVersions(t, bucket, "k", "three", "two", strings.Repeat("x", 100_000))
	view, err := s.VersionGet(s.call(model.ActionObjectGet), bucket, "k", ids[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := s.copySegment(t.Context(), view.Segment); err != nil {
		t.Fatal(err)
	}
	if err := s.core.Meta.Flush(); err != nil {
		t.Fatal(err)
	}
	moved, err := s.VersionGet(s.call(model.ActionObjectGet), bucket, "k", ids[1])
	if err != nil || moved.Blob == view.Blob {
		t.Errorf("it was not moved: %q, %v", moved.Blob, err)
	}
	s.wantVersions(t, bucket, "k", "three", "two", strings.Repeat("x", 100_000))
	if err := os.RemoveAll(filepath.Join(s.cfg.DataDir, "blobs", "blobs")); err != nil {
		t.Fatal(err)
	}
	if err := s.scrubOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.core.Meta.View(func(tx *meta.Tx) error {
		found, err := DamagedObjects(tx, s.org)
		if len(found) != 1 || found[0].SizeBytes != 100_000 {
			t.Errorf("damaged are %+v", found)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// TestDeletionOfALockedBucketIsBounded: it blocks uploads, so it must not read every version.
func TestDeletionOfALockedBucketIsBounded(t *testing.T) { // not parallel: it counts allocations
	s := openStore(t)
	b, err := s.BucketCreate(s.call(model.ActionBucketCreate), NewBucket{Project: s.project, Name: "vault", Lock: true})
	if err != nil {
		t.Fatal(err)
	}
	err = s.core.Meta.Update(func(tx *meta.Tx) error {
		for n := range 3000 {
			o := model.Object{Bucket: b.ID, Key: fmt.Sprintf("%04d", n), Version: fmt.Sprintf("%026d", n), Versioned: true, Blob: fmt.Sprint("blob", n), Segment: 1}
			if _, err := tx.PutObject(o); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	held := VersionName{Bucket: b.ID, Key: "2999"}
	if err := s.ObjectUpdate(s.call(model.ActionObjectUpdate), held, ObjectChange{Hold: new(true)}); err != nil {
		t.Fatal(err)
	}
	if allocations := testing.AllocsPerRun(5, func() {
		if _, err := s.BucketDelete(s.call(model.ActionBucketDelete), b.ID, true); !errors.Is(err, ErrLocked) {
			t.Errorf("a bucket with a held version: %v", err)
		}
	}); allocations > 2000 {
		t.Errorf("refusing to delete the bucket takes %.0f allocations", allocations)
	}
	if err := s.ObjectUpdate(s.call(model.ActionObjectUpdate), held, ObjectChange{Hold: new(false)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.BucketDelete(s.call(model.ActionBucketDelete), b.ID, true); err != nil {
		t.Errorf("once the hold is gone: %v", err)
	}
}

// TestDeleteMarkersAreBounded: deleting what is deleted adds nothing, and the plan limits markers like other versions.
func TestDeleteMarkersAreBounded(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) {
		c.Plans = map[string]model.Plan{"small": {Name: "small", Limits: map[model.Metric]int64{model.MetricObjects: 4}}}
	})
	bucket := s.versioned(t, "files")
	del := func(key string) (Deleted, error) {
		return s.ObjectDelete(t.Context(), s.call(model.ActionObjectDelete), Deletion{Bucket: bucket, Key: key, Always: true})
	}
	s.mustPut(t, bucket, "k", "one")
	first, err := del("k")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if again, err := del("k"); err != nil || again.Version.Version != first.Version.Version || !again.Version.DeleteMarker {
			t.Fatalf("deleted again: %+v, %v, want %+v", again, err, first)
		}
	}
	s.wantVersions(t, bucket, "k", "-", "one")
	if err := s.setVersioning(bucket, model.VersioningSuspended); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := del("k"); err != nil {
			t.Fatal(err)
		}
		s.wantVersions(t, bucket, "k", "null -", "-", "one")
	}
	err = s.core.Meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Organizations().Update(s.org, func(o *model.Organization) error { o.Plan = "small"; return nil })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := del("never was"); err != nil {
		t.Fatal(err)
	}
	if _, err := del("nor was this"); model.CodeOf(err) != model.CodeForbidden || !strings.Contains(err.Error(), "delete marker") {
		t.Errorf("a marker beyond the plan: %v", err)
	}
	if err := s.deleteVersion(bucket, "k", first.Version.VersionID()); err != nil {
		t.Errorf("a deletion by id: %v", err)
	}
	if _, err := del("nor was this"); err != nil {
		t.Errorf("once a place is free: %v", err)
	}
}
