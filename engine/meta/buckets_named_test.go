package meta

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"holdfast/engine/model"
)

// TestBucketsNamed finds the buckets of a name in all organizations, oldest first, in work that does not grow with the
// organizations that have none: strangers ask for it.
func TestBucketsNamed(t *testing.T) { // not parallel: it counts allocations
	db := openTest(t)
	update(t, db, func(tx *Tx) error {
		var errs []error
		for n := range 300 {
			org, proj := fmt.Sprintf("org_%03d", n), fmt.Sprintf("proj_%03d", n)
			errs = append(errs, tx.Organizations().Insert(model.Organization{ID: org, Name: org}), tx.Projects().Insert(project(proj, org, "p")))
			if n%100 == 7 {
				errs = append(errs, tx.Buckets().Insert(model.Bucket{ID: fmt.Sprintf("bucket_%03d", 300-n), Organization: org, Project: proj, Name: "photos"}))
			}
		}
		return errors.Join(append(errs, tx.Buckets().Insert(model.Bucket{ID: "bucket_x", Organization: "org_000", Project: "proj_000", Name: "photos.old"}))...)
	})
	want := func(want ...string) {
		t.Helper()
		var ids []string
		named, err := db.CachedBucketsNamed("photos")
		for _, b := range named {
			ids = append(ids, b.ID)
		}
		if !slices.Equal(ids, want) || errors.Is(err, ErrNotFound) != (len(want) == 0) {
			t.Errorf("the buckets are %v, %v, want %v", ids, err, want)
		}
	}
	want("bucket_093", "bucket_193", "bucket_293")
	if allocations := testing.AllocsPerRun(10, func() {
		if err := db.View(func(tx *Tx) error {
			named, err := tx.BucketsNamed("nowhere")
			if len(named) > 0 {
				t.Errorf("nowhere is %+v", named)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}); allocations > 100 {
		t.Errorf("a name that no bucket has takes %.0f allocations", allocations)
	}
	update(t, db, func(tx *Tx) error { return tx.DropBucket("bucket_093") })
	want("bucket_193", "bucket_293")
	for _, id := range []string{"bucket_193", "bucket_293"} {
		update(t, db, func(tx *Tx) error { return tx.DropBucket(id) })
	}
	want()
}
