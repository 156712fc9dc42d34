package objects

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// An object that would expire at once is not restored: it would be removed, and not through the trash.
func TestRestoreOfWhatHasExpired(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = 72 * time.Hour })
	bucket := s.bucket(t, "expiring")
	expire := func(days int) {
		t.Helper()
		if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{ExpireAfterDays: &days}); err != nil {
			t.Fatal(err)
		}
	}
	expire(1)
	s.mustPut(t, bucket, "k", "x")
	if err := s.delete(bucket, "k"); err != nil {
		t.Fatal(err)
	}
	s.now.Add(int64(25 * time.Hour))
	list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), TrashFilter{}, core.Page{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	restore := func() error {
		_, err := s.TrashObjectRestore(t.Context(), s.call(model.ActionTrashObjectRestore), list.Items[0].Version)
		return err
	}
	if err := restore(); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "expire_after_days") {
		t.Errorf("restore: %v", err)
	}
	expire(2)
	if err := errors.Join(restore(), s.ExpireObjects(t.Context())); err != nil {
		t.Error(err)
	}
	s.mustHold(t, bucket, map[string]string{"k": "x"})
}

func TestObjectTrash(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	bucket := s.bucket(t, "kept")
	large := text(300_000)
	s.mustPut(t, bucket, "small", "small")
	s.mustPut(t, bucket, "large", large)
	for _, key := range []string{"small", "large"} {
		if err := s.delete(bucket, key); err != nil {
			t.Fatal(err)
		}
		if _, err := s.get(bucket, key); model.CodeOf(err) != model.CodeNotFound {
			t.Errorf("a deleted object: %v", err)
		}
	}
	s.mustHold(t, bucket, map[string]string{})
	s.mustPut(t, bucket, "small", "another")
	list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), TrashFilter{}, core.Page{})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, o := range list.Items {
		_, err := s.TrashObjectRestore(t.Context(), s.call(model.ActionTrashObjectRestore), o.Version)
		if (o.Key == "small") != (model.CodeOf(err) == model.CodeConflict) {
			t.Errorf("restore of %s: %v", o.Key, err)
		}
	}
	s.mustHold(t, bucket, map[string]string{"small": "another", "large": large})
	stranger := s.call(model.ActionTrashObjectRestore)
	stranger.Organization = "org_other"
	if _, err := s.TrashObjectRestore(t.Context(), stranger, list.Items[0].Version); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("another organization's: %v", err)
	}
	s.now.Add(int64(2 * time.Hour))
	if err := s.PurgeObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), TrashFilter{}, core.Page{}); err != nil || len(list.Items) != 0 {
		t.Errorf("after its time: %+v, %v", list, err)
	}
	s.mustHold(t, bucket, map[string]string{"small": "another", "large": large})
}

// TestTrashPurge removes more than one batch, and nothing before its expiry.
func TestTrashPurge(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	bucket := s.bucket(t, "purged")
	s.mustPut(t, bucket, "younger", "uploaded first, deleted last")
	for i := range ExpireBatch + 5 {
		key := fmt.Sprint("old ", i)
		s.mustPut(t, bucket, key, "x")
		if err := s.delete(bucket, key); err != nil {
			t.Fatal(err)
		}
	}
	s.now.Add(int64(59 * time.Minute))
	s.believe()
	if err := s.delete(bucket, "younger"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		wait time.Duration
		left int
	}{{0, ExpireBatch + 6}, {2 * time.Minute, 1}, {time.Hour, 0}} {
		s.now.Add(int64(c.wait))
		s.believe()
		if err := s.PurgeObjects(t.Context()); err != nil {
			t.Fatal(err)
		}
		left := 0
		if err := s.core.Meta.ViewFlushed(func(tx *meta.Tx) error {
			left = tx.TrashedObjects().Count()
			return nil
		}); err != nil || left != c.left {
			t.Errorf("%s later %d are left, want %d, %v", c.wait, left, c.left, err)
		}
	}
}
