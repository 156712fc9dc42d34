package objects

import (
	"fmt"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/internal/testenv"
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

func TestObjectsExpire(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket, other := s.bucket(t, "expiring"), s.bucket(t, "staying")
	days := 3
	if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{ExpireAfterDays: &days}); err != nil {
		t.Fatal(err)
	}
	for i := range ExpireBatch + 5 {
		s.mustPut(t, bucket, fmt.Sprint("old ", i), "x")
	}
	s.mustPut(t, other, "old", "x")
	s.now.Add(int64(2 * 24 * time.Hour))
	s.believe()
	s.mustPut(t, bucket, "new", "y")
	if err := s.ExpireObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.content(t, bucket)); n != ExpireBatch+6 {
		t.Errorf("%d are left a day too early", n)
	}
	s.now.Add(int64(25 * time.Hour))
	s.believe()
	if err := s.ExpireObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	days = 36_500 // that is before 1970
	if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{ExpireAfterDays: &days}); err != nil {
		t.Fatal(err)
	}
	if err := s.ExpireObjects(t.Context()); err != nil {
		t.Error(err)
	}
	s.mustHold(t, bucket, map[string]string{"new": "y"})
	s.mustHold(t, other, map[string]string{"old": "x"})
}

// TestExpiryIsTurnedOffDuringASweep: once the change is acknowledged, the sweep that runs removes nothing more.
func TestExpiryIsTurnedOffDuringASweep(t *testing.T) {
	t.Parallel()
	for _, days := range []int{0, 200} {
		t.Run(fmt.Sprint(days), func(t *testing.T) {
			t.Parallel()
			s := openStore(t)
			bucket := s.bucket(t, "expiring")
			if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{ExpireAfterDays: new(1)}); err != nil {
				t.Fatal(err)
			}
			const all = 4 * ExpireBatch
			s.fill(t, bucket, all, "")
			s.now.Add(int64(48 * time.Hour))
			s.believe()
			count := func() int64 {
				b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket)
				if err != nil {
					t.Fatal(err)
				}
				return b.ObjectCount
			}
			swept := make(chan error)
			go func() { swept <- s.ExpireObjects(t.Context()) }()
			testenv.Catch(t, time.Minute, "the first batch", func() bool { return count() < all })
			if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{ExpireAfterDays: &days}); err != nil {
				t.Fatal(err)
			}
			left := count()
			if err := <-swept; err != nil {
				t.Error(err)
			}
			if now := count(); now != left {
				t.Errorf("%d objects are left of %d that were there after the change", now, left)
			}
		})
	}
}
