package engine

import (
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// What is deleted, replaced or uploaded while the clock is years behind is kept for its whole time once the clock is right.
func TestRetentionWhileClockBehind(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	cfg.TrashRetention, cfg.ReplacedRetention, cfg.ObjectTrashRetention = 7*24*time.Hour, 72*time.Hour, 7*24*time.Hour
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	db, _ := a.createDatabase(t, "shop")
	deleted, _ := a.createDatabase(t, "deleted")
	b := a.backUp(t, db.ID)
	bucket, removed, days := a.bucket(t, "photos"), a.bucket(t, "removed"), 30
	if _, err := a.Objects.BucketUpdate(a.call(model.ActionBucketUpdate), bucket, objects.BucketChange{ExpireAfterDays: &days}); err != nil {
		t.Fatal(err)
	}
	sweep := func() {
		t.Helper()
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	by.Store(int64(-10 * 365 * 24 * time.Hour))
	sweep()
	until, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), deleted.ID)
	if err != nil || until.Before(time.Now()) {
		t.Errorf("kept until %v, %v", until, err)
	}
	if until, err := a.Objects.BucketDelete(a.call(model.ActionBucketDelete), removed, false); err != nil || until.Before(time.Now()) {
		t.Errorf("the bucket is kept until %v, %v", until, err)
	}
	a.mustPut(t, bucket, "new", "just uploaded")
	a.restore(t, db.ID, b.ID)
	by.Store(0)
	sweep()
	if trash, err := a.Databases.TrashList(a.call(model.ActionTrashList), core.Filter{}, core.Page{}); err != nil || len(trash.Items) != 1 {
		t.Errorf("seconds after its deletion, the trash has %d databases, %v", len(trash.Items), err)
	}
	if a.record(t, db.ID).Replaced == nil {
		t.Error("seconds after the restore, the data that it replaced is gone")
	}
	if list, err := a.Objects.ObjectList(a.call(model.ActionObjectList), bucket, "", core.Page{}); err != nil || len(list.Items) != 1 {
		t.Errorf("seconds after the upload: %d objects, %v", len(list.Items), err)
	}
}
