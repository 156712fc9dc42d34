package objects

import (
	"fmt"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// TestMiscountedSegment: a segment that is counted as unused by mistake is not dropped. The count is corrected, so that the segment
// is dropped once nothing needs it.
func TestMiscountedSegment(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	bucket := s.bucket(t, "counted")
	want := map[string]string{}
	for i := range 20 {
		want[fmt.Sprint(i)] = fmt.Sprint("content ", i)
		s.mustPut(t, bucket, fmt.Sprint(i), want[fmt.Sprint(i)])
	}
	first, err := s.object(bucket, "0")
	if err != nil {
		t.Fatal(err)
	}
	s.close(t)
	s.open(t) // begins another segment
	want["other"] = "small"
	s.mustPut(t, bucket, "other", "small")
	if err := s.delete(bucket, "19"); err != nil { // which is in the trash
		t.Fatal(err)
	}
	delete(want, "19")
	if err := s.core.Meta.Flush(); err != nil {
		t.Fatal(err)
	}
	right, err := segmentUse(s.core.Meta.View, first.Segment)
	if err != nil || right.Objects != 20 {
		t.Fatalf("%+v, %v", right, err)
	}
	for _, objects := range []int64{0, -1} {
		if err := s.core.Meta.Update(func(tx *meta.Tx) error {
			return tx.CorrectSegmentUse(first.Segment, meta.SegmentUse{Objects: objects})
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.compactOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if use, err := segmentUse(s.core.Meta.View, first.Segment); err != nil || use.Objects != right.Objects || use.Bytes != right.Bytes {
			t.Errorf("the count is %+v, not %+v: %v", use, right, err)
		}
		s.mustHold(t, bucket, want)
	}
	testenv.Within(t, 10*time.Second, "the audit log", func() bool {
		entries, _, err := s.core.AuditList(s.call(model.ActionAuditList), core.AuditFilter{Action: string(model.ActionObjectDamaged)}, 1, core.MaxLimit)
		return err == nil && len(entries) == 2
	})
	for key := range want {
		if err := s.delete(bucket, key); err != nil {
			t.Fatal(err)
		}
	}
	s.now.Add(int64(2 * time.Hour))
	if err := s.PurgeObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.compactOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.core.Blobs.Has(blobstore.Ref(first.Blob)) {
		t.Error("the segment is kept although nothing needs it")
	}
}
