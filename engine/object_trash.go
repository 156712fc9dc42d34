package engine

import (
	"context"
	"errors"
	"fmt"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TrashObjectList returns the deleted objects of the call's organization that
// can still be brought back, the newest versions first.
func (e *Engine) TrashObjectList(call *model.Call, page Page) (List[model.TrashedObject], error) {
	return listRecords(e, call, model.ActionTrashObjectList, (*meta.Tx).TrashedObjects, page,
		func(o model.TrashedObject) string { return o.Version })
}

// TrashObjectRestore brings a deleted object back, of which version is the id.
func (e *Engine) TrashObjectRestore(call *model.Call, version string) (model.Object, error) {
	var trashed model.TrashedObject
	err := e.meta.View(func(tx *meta.Tx) (err error) {
		trashed, err = tx.TrashedObjects().Get(version)
		return err
	})
	if errors.Is(err, meta.ErrNotFound) || err == nil && trashed.Organization != call.Organization {
		return model.Object{}, noTrashedObject(version)
	}
	if err != nil {
		return model.Object{}, err
	}
	release := e.order.bucket(trashed.Bucket)
	defer release()
	call.Resource = objectResource(trashed.Bucket, trashed.Key)
	counted, err := e.reserveObject(call.Organization, Upload{Bucket: trashed.Bucket, Key: trashed.Key}, trashed.SizeBytes)
	if err != nil {
		return model.Object{}, err
	}
	defer counted()
	var object model.Object
	err = e.change(call, func(tx *meta.Tx) error {
		b, err := tx.Buckets().Get(trashed.Bucket)
		if err == nil && b.ExpireAfterDays > 0 && trashed.LastModified.Before(e.expiredBefore(b)) {
			return model.Errorf(model.CodeConflict, "the object is as old as its bucket lets objects become, and would be removed again at once: raise the bucket's expire_after_days first, or set it to 0")
		}
		if err == nil {
			object, err = tx.UntrashObject(version, e.clock())
		}
		switch {
		case errors.Is(err, meta.ErrExists):
			return model.Errorf(model.CodeConflict, "another object has the key %q by now: delete it first", trashed.Key)
		case errors.Is(err, meta.ErrNotFound):
			return noTrashedObject(version)
		}
		return err
	})
	return object, err
}

func noTrashedObject(version string) error {
	return model.Errorf(model.CodeNotFound, "no object %q in the trash, or its bucket is gone; `holdfast admin trash objects` shows what is", version)
}

// purgeObjects removes for good the objects that were in the trash for their
// time.
func (e *Engine) purgeObjects(ctx context.Context) error {
	if e.keepsAll() {
		return nil
	}
	bound := meta.DeletionKey(e.clock().Add(-e.cfg.ObjectTrashRetention))
	for ctx.Err() == nil {
		var due []model.TrashedObject
		if err := e.meta.Peek(func(tx *meta.Tx) (err error) {
			due, err = tx.TrashedObjects().Before(meta.ByDeletion, bound, expireBatch)
			return err
		}); err != nil || len(due) == 0 {
			return err
		}
		of := map[string][]model.TrashedObject{} // an organization
		for _, o := range due {
			of[o.Organization] = append(of[o.Organization], o)
		}
		for organization, objects := range of {
			if err := e.purgeSome(organization, objects); err != nil {
				return err
			}
		}
		e.unlinkSoon()
	}
	return nil
}

func (e *Engine) purgeSome(organization string, objects []model.TrashedObject) error {
	call := e.system(model.ActionObjectPurge, organization, model.Resource{Type: model.ResourceOrganization, ID: organization})
	call.Note("objects", fmt.Sprint(len(objects)))
	return e.change(call, func(tx *meta.Tx) error {
		for _, o := range objects {
			if err := tx.PurgeObject(o.Version); err != nil && !errors.Is(err, meta.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}
