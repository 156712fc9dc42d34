package objects

import (
	"testing"

	"holdfast/engine/access"
	"holdfast/engine/model"
)

// TestBucketNameInOrganization: the name of a bucket is taken in every project of its organization, and finds the bucket.
func TestBucketNameInOrganization(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	other, err := access.New(s.core).ProjectCreate(s.call(model.ActionProjectCreate), "other")
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.BucketCreate(s.call(model.ActionBucketCreate), NewBucket{Project: other.ID, Name: "photos"})
	if err != nil {
		t.Fatal(err)
	}
	for _, project := range []string{s.project, other.ID, ""} {
		if _, err := s.BucketCreate(s.call(model.ActionBucketCreate), NewBucket{Project: project, Name: "photos"}); model.CodeOf(err) != model.CodeConflict {
			t.Errorf("the name a second time, in project %q: %v", project, err)
		}
	}
	if b, err := s.BucketNamed(s.call(model.ActionBucketGet), "photos"); err != nil || b.ID != made.ID {
		t.Errorf("photos is %+v, %v", b, err)
	}
	if b, err := s.BucketCreate(s.call(model.ActionBucketCreate), NewBucket{Name: "files"}); err != nil || b.Project != s.project {
		t.Errorf("without a project: %+v, %v", b, err)
	}
}
