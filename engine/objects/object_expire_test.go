package objects

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/core"
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
	old, err := s.oldestObjects(bucket, "", s.core.Clock().Add(time.Hour))
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

// TestPrefixesExpire: rules concern what begins with their prefix, and the shortest time counts.
func TestPrefixesExpire(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "expiring")
	if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{Expiry: &model.Expiry{
		{Prefix: "tmp/", Days: 1}, {Prefix: "tmp/b", Days: 30}, {Prefix: "logs/", Days: 3},
	}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, key := range []string{"a", "tmp", "tmp/a", "tmp/b", "logs/a", "z"} {
		s.mustPut(t, bucket, key, "x")
		want[key] = "x"
	}
	for day, gone := range [][]string{{}, {"tmp/a", "tmp/b"}, {}, {"logs/a"}} {
		for _, key := range gone {
			delete(want, key)
		}
		if err := s.ExpireObjects(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.mustHold(t, bucket, want)
		if t.Failed() {
			t.Fatal("on day ", day)
		}
		s.now.Add(int64(24*time.Hour + time.Minute))
		s.believe()
	}
}

// TestObjectsExpireBesideDamage: an object that cannot be read stays, is reported, and keeps no others.
func TestObjectsExpireBesideDamage(t *testing.T) {
	t.Parallel()
	for _, versioning := range []model.Versioning{model.VersioningOff, model.VersioningEnabled, model.VersioningSuspended} {
		t.Run(string(versioning), func(t *testing.T) {
			t.Parallel()
			s := openStore(t)
			bucket := s.bucket(t, "expiring")
			s.mustPut(t, bucket, "covered", "null")
			if versioning != model.VersioningOff {
				if err := s.setVersioning(bucket, model.VersioningEnabled); err != nil {
					t.Fatal(err)
				}
				s.mustPut(t, bucket, "covered", "one")
			}
			if versioning == model.VersioningSuspended { // the delete marker would replace the null version
				if err := s.setVersioning(bucket, versioning); err != nil {
					t.Fatal(err)
				}
				s.damageRecord(t, bucket, "versions", "covered")
			}
			s.setExpiry(t, bucket, model.ExpiryRule{Days: 3})
			for _, key := range []string{"a", "damaged", "z"} {
				s.mustPut(t, bucket, key, "one")
			}
			s.damageRecord(t, bucket, "keys", "damaged")
			s.now.Add(int64(4 * 24 * time.Hour))
			s.believe()
			for range 2 {
				if err := s.ExpireObjects(t.Context()); !isDamagedRecord(err) {
					t.Errorf("of the damage is said: %v", err)
				}
				for _, key := range []string{"a", "z"} {
					if _, err := s.get(bucket, key); model.CodeOf(err) != model.CodeNotFound {
						t.Errorf("%s: %v", key, err)
					}
				}
			}
			if _, err := s.get(bucket, "covered"); (err == nil) != (versioning == model.VersioningSuspended) {
				t.Errorf("what covers a null version: %v", err)
			}
		})
	}
}

// TestAgeBesideManyRules: an age for the whole bucket is one of its rules.
func TestAgeBesideManyRules(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "files")
	var rules []model.ExpiryRule
	for i := range model.MaxExpiryRules {
		rules = append(rules, model.ExpiryRule{Prefix: fmt.Sprintf("%03d/", i), Days: 1})
	}
	s.setExpiry(t, bucket, rules...)
	age := func(days int) (model.Expiry, error) {
		b, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{ExpireAfterDays: &days})
		return b.Expiry, err
	}
	if _, err := age(3); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("beside %d rules: %v", len(rules), err)
	}
	if got, err := age(0); err != nil || len(got) != len(rules) {
		t.Errorf("without an age: %d rules, %v", len(got), err)
	}
	s.setExpiry(t, bucket, rules[1:]...)
	if got, err := age(3); err != nil || len(got) != len(rules) || got.Days() != 3 {
		t.Errorf("beside %d rules: %d rules, %v", len(rules)-1, len(got), err)
	}
}

// leapingClock has the service's clock leap a year when it is read for the nth time from now on, until steady is called.
func leapingClock(s *store, nth int64) (steady func()) {
	clock, reads := s.core.Clock, new(atomic.Int64)
	s.core.Clock = func() time.Time {
		if reads.Add(1) == nth {
			s.now.Add(int64(365 * 24 * time.Hour))
		}
		return clock()
	}
	return func() { s.core.Clock = clock }
}

// TestLeapDuringASweep: whenever the clock leaps while a sweep runs, what is new stays.
func TestLeapDuringASweep(t *testing.T) {
	t.Parallel()
	for nth := range int64(16) {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = 72 * time.Hour })
			bucket := s.bucket(t, "expiring")
			if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{ExpireAfterDays: new(3)}); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"old", "deleted long ago"} {
				s.mustPut(t, bucket, key, "x")
			}
			if err := s.delete(bucket, "deleted long ago"); err != nil {
				t.Fatal(err)
			}
			s.now.Add(int64(4 * 24 * time.Hour))
			s.believe()
			for _, key := range []string{"new", "deleted today"} {
				s.mustPut(t, bucket, key, "x")
			}
			if err := s.delete(bucket, "deleted today"); err != nil {
				t.Fatal(err)
			}
			steady := leapingClock(s, nth)
			if err := s.ExpireObjects(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := s.get(bucket, "new"); err != nil {
				t.Errorf("the object of today: %v", err)
			}
			steady()
			s.now.Store(int64(4 * 24 * time.Hour))
			s.believe()
			leapingClock(s, nth)
			if err := s.PurgeObjects(t.Context()); err != nil {
				t.Fatal(err)
			}
			list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), TrashFilter{}, core.Page{})
			if err != nil || len(list.Items) == 0 || list.Items[0].Key != "deleted today" {
				t.Errorf("the trash has %+v, %v", list.Items, err)
			}
		})
	}
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
