package objects

import (
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// What begins while the clock is days behind is neither over nor older than what was before it once the clock is right.
func TestRetentionBeginsWhileClockIsBehind(t *testing.T) {
	t.Parallel()
	const day, week = 24 * time.Hour, 7
	for name, test := range map[string]func(t *testing.T, s *store){
		"a version from the trash": func(t *testing.T, s *store) {
			bucket := s.versioned(t, "files")
			s.setExpiry(t, bucket, model.ExpiryRule{NoncurrentDays: week})
			s.mustPut(t, bucket, "k", "one")
			s.mustPut(t, bucket, "k", "two")
			_, ids := s.versions(t, bucket, "k")
			if err := s.deleteVersion(bucket, "k", ids[0]); err != nil {
				t.Fatal(err)
			}
			s.now.Store(-int64(10 * day))
			if _, err := s.TrashObjectRestore(t.Context(), s.call(model.ActionTrashObjectRestore), ids[0]); err != nil {
				t.Fatal(err)
			}
			s.now.Store(0)
			s.expire(t)
			s.wantVersions(t, bucket, "k", "two", "one")
		},
		"what expires": func(t *testing.T, s *store) {
			bucket := s.versioned(t, "files")
			s.mustPut(t, bucket, "k", "one")
			s.setExpiry(t, bucket, model.ExpiryRule{Days: 1, NoncurrentDays: week})
			s.now.Store(int64(20 * day))
			s.believe()
			for _, days := range []time.Duration{10, 20} {
				s.now.Store(int64(days * day))
				s.expire(t)
				s.wantVersions(t, bucket, "k", "-", "one")
			}
		},
		"a bucket from the trash with what has expired": func(t *testing.T, s *store) {
			bucket := s.bucket(t, "files")
			s.setExpiry(t, bucket, model.ExpiryRule{Days: 15})
			s.mustPut(t, bucket, "k", "one")
			s.deleteBucket(t, bucket)
			s.now.Store(int64(20 * day))
			s.believe()
			s.now.Store(int64(10 * day))
			if err := s.restoreBucket(bucket); err != nil {
				t.Fatal(err)
			}
			s.now.Store(int64(20 * day))
			s.expire(t)
			s.mustHold(t, bucket, map[string]string{"k": "one"})
		},
		"a restore of a versioned bucket": func(t *testing.T, s *store) {
			bucket := s.versioned(t, "files")
			s.setExpiry(t, bucket, model.ExpiryRule{NoncurrentDays: week})
			s.now.Store(int64(time.Minute))
			target := s.core.Clock()
			s.now.Store(int64(2 * time.Minute))
			s.believe()
			s.mustPut(t, bucket, "k", "one")
			s.now.Store(-int64(10 * day))
			s.restore(t, bucket, target)
			s.now.Store(int64(2 * time.Minute))
			s.expire(t)
			s.wantVersions(t, bucket, "k", "-", "one")
		},
		"a restore of a bucket": func(t *testing.T, s *store) {
			bucket := s.bucket(t, "files")
			s.now.Store(int64(time.Minute))
			target := s.core.Clock()
			s.now.Store(int64(2 * time.Minute))
			s.believe()
			s.mustPut(t, bucket, "k", "one")
			s.now.Store(-int64(10 * day))
			s.restore(t, bucket, target)
			s.now.Store(int64(2 * time.Minute))
			if err := s.PurgeObjects(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.mustContain(t, "the bucket", bucket, map[string]string{})
			if _, objects := s.trashed(t); len(objects) != 1 {
				t.Errorf("the trash has %+v", objects)
			}
		},
		"rules that removed sooner": func(t *testing.T, s *store) {
			bucket := s.bucket(t, "files")
			s.setExpiry(t, bucket, model.ExpiryRule{Days: 1})
			s.now.Store(int64(2 * day))
			s.believe()
			s.now.Store(-int64(10 * day))
			s.setExpiry(t, bucket, model.ExpiryRule{Days: 2})
			history, err := s.BucketHistory(s.call(model.ActionBucketHistory), bucket)
			if err != nil || history.Since.Before(time.Now().Add(day)) {
				t.Errorf("history %+v, %v", history, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, openStore(t, func(c *core.Config) { c.ObjectTrashRetention = week * day }))
		})
	}
}
