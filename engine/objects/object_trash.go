package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TrashFilter selects deleted objects, by when they were deleted. An empty field
// selects all.
type TrashFilter struct {
	core.Filter
	Bucket string // id
	Prefix string // of the key
}

func (f TrashFilter) admits(o model.TrashedObject) bool {
	return !o.DeleteMarker && f.Admits("", "", o.DeletedAt) && core.Equals(f.Bucket, o.Bucket) && strings.HasPrefix(o.Key, f.Prefix)
}

// TrashObjectList returns the deleted objects of the call's organization that
// can still be restored and match the filter, newest versions first.
func (s *Service) TrashObjectList(call *model.Call, filter TrashFilter, page core.Page) (core.List[model.TrashedObject], error) {
	return core.ListRecords(s.core, s.core.Meta.ViewFlushed, call, model.ActionTrashObjectList, (*meta.Tx).TrashedObjects, page,
		core.Select(filter, filter.admits))
}

// TrashObjectRestore restores the deleted object with that version.
func (s *Service) TrashObjectRestore(ctx context.Context, call *model.Call, version string) (object model.Object, err error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.Object{}, err
	}
	trashed, err := s.trashedObject(call, version)
	if err != nil {
		return model.Object{}, err
	}
	err = s.withinPlan(ctx, call.Organization, func() (err error) {
		object, err = s.untrashObject(call, trashed)
		return err
	})
	return object, err
}

func (s *Service) untrashObject(call *model.Call, trashed model.TrashedObject) (model.Object, error) {
	release := s.locks.bucket(trashed.Bucket)
	defer release()
	b, err := s.core.Meta.CachedBucket(trashed.Bucket)
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return model.Object{}, err
	}
	counted, err := s.reserveObject(call.Organization, b, Upload{Bucket: trashed.Bucket, Key: trashed.Key}, trashed.SizeBytes)
	if err != nil {
		return model.Object{}, err
	}
	defer counted()
	var object model.Object
	err = s.core.Change(call, func(tx *meta.Tx) error {
		if _, err := tx.TrashedBuckets().Get(trashed.Bucket); err == nil {
			return model.Errorf(model.CodeConflict, "the object's bucket is in the trash too: restore it first, with `holdfast trash restore %s`", trashed.Bucket)
		}
		b, err := tx.Buckets().Get(trashed.Bucket)
		if err == nil && s.hasExpired(b, trashed.Object) {
			return model.Errorf(model.CodeConflict, "the object is older than its bucket keeps objects, and would be removed again immediately: change its expire_after_days or expiry_rules first")
		}
		if err == nil {
			object, err = tx.UntrashObject(trashed.Version, s.core.RetentionClock())
		}
		switch {
		case errors.Is(err, meta.ErrExists):
			return model.Errorf(model.CodeConflict, "another object has the key %q now: delete it first", trashed.Key)
		case errors.Is(err, meta.ErrNotFound):
			return noTrashedObject(trashed.Version)
		}
		return err
	})
	return object, err
}

// trashedObject returns a deleted object of the call's organization, and makes it the call's
// resource.
func (s *Service) trashedObject(call *model.Call, version string) (model.TrashedObject, error) {
	trashed, err := meta.Value(s.core.Meta.ViewFlushed, func(tx *meta.Tx) (model.TrashedObject, error) { return tx.TrashedObjects().Get(version) })
	if errors.Is(err, meta.ErrNotFound) || err == nil && (trashed.Organization != call.Organization || trashed.DeleteMarker) {
		return trashed, noTrashedObject(version)
	}
	call.Resource = objectResource(trashed.Bucket, trashed.Key)
	return trashed, err
}

// TrashObjectPurge permanently removes the deleted object with that version.
func (s *Service) TrashObjectPurge(call *model.Call, version string) error {
	trashed, err := s.trashedObject(call, version)
	if err != nil {
		return err
	}
	defer s.UnlinkSoon()
	return s.purgeSome(call, []model.TrashedObject{trashed}, anyway)
}

func noTrashedObject(version string) error {
	return model.Errorf(model.CodeNotFound, "no object %q in the trash, or its bucket is gone; `holdfast trash objects` shows what is", version)
}

// PurgeObjects permanently removes the objects whose retention in the trash has expired.
func (s *Service) PurgeObjects(ctx context.Context) error {
	return purgeDeleted(ctx, s, (*meta.Tx).TrashedObjects, s.purgeExpired)
}

// purgeExpired removes those of the objects from the trash that are still there and were deleted before expired.
func (s *Service) purgeExpired(objects []model.TrashedObject, expired time.Time) error {
	of := map[string][]model.TrashedObject{} // by organization
	for _, o := range objects {
		of[o.Organization] = append(of[o.Organization], o)
	}
	for organization, objects := range of {
		call := s.core.System(model.ActionObjectPurge, organization, core.OrganizationResource(model.Organization{ID: organization}))
		if err := s.purgeSome(call, objects, func(tx *meta.Tx, o model.TrashedObject) error {
			return keepUnexpired(tx, o.Bucket, o.DeletedAt, expired)
		}); err != nil {
			return err
		}
	}
	return nil
}

// purgeSome removes the objects from the trash, except those that are not there any more, or that admits refuses as they
// are now.
func (s *Service) purgeSome(call *model.Call, objects []model.TrashedObject, admits func(*meta.Tx, model.TrashedObject) error) error {
	return ignoreKept(s.core.Change(call, func(tx *meta.Tx) error {
		purged := 0
		for _, o := range objects {
			err := mayPurge(tx, tx.TrashedObjects(), o.Version, admits)
			if errors.Is(err, errKept) {
				continue
			}
			if err == nil {
				err = tx.PurgeObject(o.Version)
			}
			if err != nil {
				return err
			}
			purged++
		}
		if purged == 0 {
			return errKept
		}
		call.Note("objects", fmt.Sprint(purged))
		return nil
	}))
}

// EmptyObjects permanently removes the deleted objects of the call's organization
// and returns their number.
func (s *Service) EmptyObjects(call *model.Call) (int, error) {
	removed := 0
	for {
		var some []model.TrashedObject
		if err := s.core.Meta.ViewFlushed(func(tx *meta.Tx) (err error) {
			some, _, err = tx.TrashedObjects().Newest(meta.ByOrganization, meta.Key(call.Organization), "", ExpireBatch)
			return err
		}); err != nil || len(some) == 0 {
			return removed, err
		}
		if err := s.purgeSome(core.PartOf(call, core.OrganizationResource(model.Organization{ID: call.Organization})), some, anyway); err != nil {
			return removed, err
		}
		removed += len(some)
	}
}
