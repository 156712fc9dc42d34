package objects

import (
	"errors"
	"testing"
	"time"

	"holdfast/engine/model"
)

// TestLocksOutlastALeapOfTheClock: a clock that leaps ahead ends no retention until the appliance believes it.
func TestLocksOutlastALeapOfTheClock(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	b, err := s.BucketCreate(s.call(model.ActionBucketCreate), NewBucket{Project: s.project, Name: "vault", Lock: true})
	if err != nil {
		t.Fatal(err)
	}
	s.mustPut(t, b.ID, "k", "locked")
	o, err := s.object(b.ID, "k")
	if err != nil {
		t.Fatal(err)
	}
	name, until := VersionName{Bucket: b.ID, Key: "k", Version: o.Version}, s.core.Clock().AddDate(1, 0, 0)
	retain := func(mode model.LockMode, until time.Time) error {
		return s.ObjectUpdate(s.call(model.ActionObjectUpdate), name, ObjectChange{Retention: &Retention{Mode: mode, Until: until}})
	}
	if err := retain(model.LockCompliance, until); err != nil {
		t.Fatal(err)
	}
	leap := int64(400 * 24 * time.Hour)
	s.now.Add(leap)
	if !s.core.KeepsAll() {
		t.Fatal("the clock is believed")
	}
	if err := s.deleteVersion(b.ID, "k", o.Version); !errors.Is(err, ErrLocked) {
		t.Errorf("the version is deleted: %v", err)
	}
	if _, err := s.BucketDelete(s.call(model.ActionBucketDelete), b.ID, true); !errors.Is(err, ErrLocked) {
		t.Errorf("the bucket is deleted: %v", err)
	}
	if err := retain("", time.Time{}); !errors.Is(err, ErrLocked) {
		t.Errorf("the retention is taken away: %v", err)
	}
	if err := retain(model.LockCompliance, until.AddDate(0, 0, 1)); err != nil {
		t.Errorf("the retention is extended to a time that is still ahead: %v", err)
	}
	s.believe()
	if err := s.deleteVersion(b.ID, "k", o.Version); err != nil {
		t.Errorf("once the clock is believed: %v", err)
	}
}
