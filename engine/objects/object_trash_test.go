package objects

import (
	"errors"
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
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
	list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), core.Page{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	restore := func() error {
		_, err := s.TrashObjectRestore(s.call(model.ActionTrashObjectRestore), list.Items[0].Version)
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
	list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), core.Page{})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, o := range list.Items {
		_, err := s.TrashObjectRestore(s.call(model.ActionTrashObjectRestore), o.Version)
		if (o.Key == "small") != (model.CodeOf(err) == model.CodeConflict) {
			t.Errorf("restore of %s: %v", o.Key, err)
		}
	}
	s.mustHold(t, bucket, map[string]string{"small": "another", "large": large})
	stranger := s.call(model.ActionTrashObjectRestore)
	stranger.Organization = "org_other"
	if _, err := s.TrashObjectRestore(stranger, list.Items[0].Version); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("another organization's: %v", err)
	}
	s.now.Add(int64(2 * time.Hour))
	if err := s.PurgeObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), core.Page{}); err != nil || len(list.Items) != 0 {
		t.Errorf("after its time: %+v, %v", list, err)
	}
	s.mustHold(t, bucket, map[string]string{"small": "another", "large": large})
}
