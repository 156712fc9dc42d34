package objects

import (
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/model"
)

// otherOrganization makes another organization and returns how to call as a key of it.
func (s *store) otherOrganization(t testing.TB) (call func(model.Action) *model.Call) {
	t.Helper()
	org, err := access.New(s.core).OrganizationCreate(&model.Call{Operation: model.Operation{Action: model.ActionOrganizationCreate}, Actor: model.Actor{Type: model.ActorOperator}}, "other")
	if err != nil {
		t.Fatal(err)
	}
	return func(action model.Action) *model.Call {
		call := s.call(action)
		call.Organization = org.ID
		return call
	}
}

// TestNamesWhileClockIsWrong: a wrong clock gives the name of a bucket to no bucket of another organization, neither when that is
// created nor when it comes back from the trash.
func TestNamesWhileClockIsWrong(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	s := openStore(t, keepRemoved)
	other := s.otherOrganization(t)
	for name, clock := range map[string]struct{ first, second time.Duration }{"ahead": {year, 0}, "behind": {0, -year}} {
		create := func(call *model.Call, off time.Duration) string {
			t.Helper()
			s.now.Store(int64(off))
			b, err := s.BucketCreate(call, NewBucket{Name: name, Public: true})
			if err != nil {
				t.Fatal(err)
			}
			return b.ID
		}
		means := func(want string) {
			t.Helper()
			s.now.Store(0)
			if b, err := s.BucketForEverybody(&model.Call{Actor: model.Anybody()}, name); err != nil || b.ID != want {
				t.Errorf("%s: the bucket is %q, %v; want %q", name, b.ID, err, want)
			}
		}
		first := create(s.call(model.ActionBucketCreate), clock.first)
		second := create(other(model.ActionBucketCreate), clock.second)
		means(first)
		s.deleteBucket(t, first)
		means(second)
		s.now.Store(-int64(year))
		if err := s.restoreBucket(first); err != nil {
			t.Fatal(err)
		}
		means(second)
	}
}
