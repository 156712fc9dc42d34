package engine

import (
	"strings"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/model"
)

// A note that cannot be carried out is named, and stops nothing behind it.
func TestNoteThatFails(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	bucket := s.bucket(t, "files")
	note, err := (&objectNote{Act: actPut, Object: model.Object{Bucket: bucket, Key: "bad", Version: "too short"}}).encode()
	if err != nil {
		t.Fatal(err)
	}
	s.deliver([]blobstore.Entry{{Position: blobstore.Position(s.meta.Applied() + 1), Note: note}})
	s.mustPut(t, bucket, "good", "good")
	if got := s.content(t, bucket); len(got) != 1 || got["good"] != "good" {
		t.Errorf("there are %v", got)
	}
	if b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket); err != nil || b.ObjectCount != 1 {
		t.Errorf("%d are counted, %v", b.ObjectCount, err)
	}
	found, err := s.advice("damaged_journal")
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Message, "1 records") {
		t.Errorf("advice %+v, %v", found, err)
	}
	s.now.Store(int64(journalDamageKept + time.Hour))
	if found, err := s.advice("damaged_journal"); err != nil || len(found) != 0 {
		t.Errorf("long after: %+v, %v", found, err)
	}
}
