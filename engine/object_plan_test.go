package engine

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// Concurrent uploads get exactly as much as the plan allows, although the metadata lag behind, even if some replace and
// delete objects.
func TestPlanLimitOfObjectsHoldsForConcurrentCallers(t *testing.T) {
	t.Parallel()
	a, _ := openWithPlans(t, map[string]int64{"objects": 20, "storage_bytes": 15})
	bucket := a.bucket(t, "files")
	for range 5 {
		var made atomic.Int64
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				if err := a.put(bucket, fmt.Sprint(i%40), "1"); err == nil {
					made.Add(1)
				} else {
					refusedByPlan(t, err, "storage_bytes: the plan tiny allows 15, and 15 are in use")
				}
			})
		}
		all.Wait()
		usage, err := a.Insight.Usage(a.call(model.ActionUsageGet))
		if err != nil || usage.Objects != 15 || usage.StorageBytes != 15 || made.Load() < 15 {
			t.Fatalf("%d objects of %d bytes, %d uploads, %v", usage.Objects, usage.StorageBytes, made.Load(), err)
		}
		if held := a.Objects.Reserved(a.org); held != (model.Totals{}) {
			t.Errorf("%+v is still held", held)
		}
		objs, err := a.Objects.ObjectList(a.call(model.ActionObjectList), bucket, "", core.Page{Limit: core.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objs.Items {
			all.Go(func() {
				if _, err := a.Objects.ObjectDelete(t.Context(), a.call(model.ActionObjectDelete), objects.Deletion{Bucket: bucket, Key: o.Key}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// The full size of a resumable upload counts from its beginning to its end, and only once.
func TestPlanLimitOfUploads(t *testing.T) {
	t.Parallel()
	a, _ := openWithPlans(t, map[string]int64{"storage_bytes": 10})
	bucket := a.bucket(t, "files")
	create := func(key string, length int64) (model.Upload, error) {
		return a.Objects.UploadCreate(t.Context(), a.call(model.ActionUploadCreate), objects.NewUpload{Bucket: bucket, Key: key, Length: length})
	}
	send := func(u model.Upload) error {
		_, err := a.Objects.UploadAppend(t.Context(), a.call(model.ActionUploadAppend), bucket, u.ID, 0, strings.NewReader(strings.Repeat("x", int(u.Length))))
		return err
	}
	_, err := create("large", 11)
	refusedByPlan(t, err, "storage_bytes: the plan tiny allows 10, and 0 are in use")
	given, err := create("given up", 5)
	if err != nil {
		t.Fatal(err)
	}
	_, err = create("second", 6)
	refusedByPlan(t, err, "storage_bytes: the plan tiny allows 10, and 5 are in use")
	if err := a.Objects.UploadDelete(a.call(model.ActionUploadDelete), bucket, given.ID); err != nil {
		t.Fatal(err)
	}
	second, err := create("second", 6)
	if err != nil {
		t.Fatal(err)
	}
	refusedByPlan(t, a.put(bucket, "third", "12345"), "storage_bytes: the plan tiny allows 10, and 6 are in use")
	if err := send(second); err != nil {
		t.Fatal(err)
	}
	if err := a.put(bucket, "third", "1234"); err != nil {
		t.Error(err)
	}
	if usage, err := a.Insight.Usage(a.call(model.ActionUsageGet)); err != nil || usage.Totals.Of(model.MetricStorageBytes) != 10 || usage.Uploads != 0 {
		t.Errorf("%+v, %v", usage.Totals, err)
	}
}

// Objects restored from the trash need space in the plan, too.
func TestPlanLimitOfTrashedObjects(t *testing.T) {
	t.Parallel()
	a, _ := openWithPlans(t, map[string]int64{"objects": 1})
	a.Engine.Core.Config.ObjectTrashRetention = time.Hour
	bucket := a.bucket(t, "files")
	if err := a.put(bucket, "a", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Objects.ObjectDelete(t.Context(), a.call(model.ActionObjectDelete), objects.Deletion{Bucket: bucket, Key: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := a.put(bucket, "b", "1"); err != nil {
		t.Fatal(err)
	}
	trashed, err := a.Objects.TrashObjectList(a.call(model.ActionTrashObjectList), objects.TrashFilter{}, core.Page{})
	if err != nil || len(trashed.Items) != 1 {
		t.Fatal(trashed, err)
	}
	restore := func() error {
		_, err := a.Objects.TrashObjectRestore(t.Context(), a.call(model.ActionTrashObjectRestore), trashed.Items[0].Version)
		return err
	}
	refusedByPlan(t, restore(), "objects: the plan tiny allows 1, and 1 are in use")
	if _, err := a.Objects.ObjectDelete(t.Context(), a.call(model.ActionObjectDelete), objects.Deletion{Bucket: bucket, Key: "b"}); err != nil {
		t.Fatal(err)
	}
	if err := restore(); err != nil {
		t.Error(err)
	}
	if _, err := a.Objects.BucketDelete(a.call(model.ActionBucketDelete), bucket, true); err != nil {
		t.Fatal(err)
	}
	another := a.bucket(t, "another")
	if err := a.put(another, "c", "1"); err != nil {
		t.Fatal(err)
	}
	_, err = a.Objects.TrashBucketRestore(t.Context(), a.call(model.ActionTrashBucketRestore), bucket)
	refusedByPlan(t, err, "objects: the plan tiny allows 1, and 1 are in use")
	if err := a.put(bucket, "d", "1"); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("it is there: %v", err)
	}
}
