package objects

import (
	"testing"
	"time"

	"holdfast/engine/model"
)

// An object that replaced one about to expire stays.
func TestReplacedBeforeItExpires(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "expiring")
	s.mustPut(t, bucket, "a", "old")
	s.mustPut(t, bucket, "b", "old")
	old, err := s.oldestObjects(bucket, s.core.Clock().Add(time.Hour))
	if err != nil || len(old) != 2 {
		t.Fatalf("%v, %v", old, err)
	}
	s.mustPut(t, bucket, "a", "new")
	b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket)
	if err != nil {
		t.Fatal(err)
	}
	if removed, err := s.removeExpired(b, old); removed != 1 || err != nil {
		t.Errorf("%d removed, %v", removed, err)
	}
	s.mustHold(t, bucket, map[string]string{"a": "new"})
}
