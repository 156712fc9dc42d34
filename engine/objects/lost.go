package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// lostPage is how many objects DropLost looks at in a transaction.
const lostPage = 1000

// DropLost removes the objects since a time whose bytes are neither here nor can be fetched, and returns how many there
// were: after a recovery from an off-site copy, those whose bytes the copy did not have yet. The version before comes
// back, or the newest of those they replaced whose bytes are there. Nothing else changes objects meanwhile.
func (s *Service) DropLost(ctx context.Context, since time.Time) (dropped int, err error) {
	if err := s.core.Meta.Flush(); err != nil {
		return 0, err
	}
	buckets, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (all []model.Bucket, err error) {
		return all, tx.Buckets().All(func(b model.Bucket) error {
			all = append(all, b)
			return nil
		})
	})
	if err != nil {
		return 0, err
	}
	for _, b := range buckets {
		n, err := s.dropLostOf(ctx, b, since)
		if dropped += n; err != nil {
			return dropped, fmt.Errorf("drop objects without bytes: %w", err)
		}
	}
	n, err := s.dropLostTrash(since)
	if err != nil {
		err = fmt.Errorf("drop deleted objects without bytes: %w", err)
	}
	return dropped + n, err
}

// dropLostTrash removes the deleted objects whose bytes are nowhere.
func (s *Service) dropLostTrash(since time.Time) (dropped int, err error) {
	newer, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.TrashedObject, error) {
		return tx.TrashedObjects().Where(func(o model.TrashedObject) bool { return !o.LastModified.Before(since) })
	})
	for _, o := range newer {
		if err != nil {
			return dropped, err
		}
		if s.isLost(o.Object, since) {
			err = s.purgeSome(s.lostCall(o.Organization, o.Object, nil), []model.TrashedObject{o}, anyway)
			dropped++
		}
	}
	return dropped, err
}

// isLost reports whether the bytes of an object since a time are nowhere.
func (s *Service) isLost(o model.Object, since time.Time) bool {
	return o.Blob != "" && !o.LastModified.Before(since) && !s.core.Blobs.Has(blobstore.Ref(o.Blob))
}

// lostCall logs that an object is dropped, and returns the call for the audit log. back is what comes back for it, nil for nothing.
func (s *Service) lostCall(organization string, o model.Object, back *model.Object) *model.Call {
	log := s.core.Log.With("bucket", o.Bucket, "key", o.Key, "version", o.Version)
	call := s.core.System(model.ActionObjectDamaged, organization, objectResource(o.Bucket, o.Key))
	call.Note("dropped", "its bytes had not been copied off-site")
	if back != nil {
		log = log.With("brought_back", back.Version)
		call.Note("brought_back", back.Version)
	}
	log.Warn("an object is dropped, because its bytes had not been copied off-site yet")
	return call
}

func (s *Service) dropLostOf(ctx context.Context, b model.Bucket, since time.Time) (dropped int, err error) {
	page := meta.VersionFolder{More: true}
	for page.More && ctx.Err() == nil {
		if err := s.core.Meta.View(func(tx *meta.Tx) (err error) {
			page, err = tx.ListVersions(b.ID, "", "", page.LastKey, page.LastVersion, lostPage)
			return err
		}); err != nil {
			return dropped, err
		}
		for _, o := range page.Versions {
			if !s.isLost(o.Object, since) {
				continue
			}
			if err := s.dropLost(b, o.Object); err != nil {
				return dropped, err
			}
			dropped++
		}
	}
	return dropped, ctx.Err()
}

func (s *Service) dropLost(b model.Bucket, o model.Object) error {
	back := o.Replaced
	for back != nil && back.Blob != "" && !s.core.Blobs.Has(blobstore.Ref(back.Blob)) {
		back = back.Replaced
	}
	call := s.lostCall(b.Organization, o, back)
	return s.core.Change(call, func(tx *meta.Tx) error {
		now := s.core.RetentionClock()
		_, err := tx.DeleteVersion(o.Bucket, o.Key, o.VersionID(), now)
		if errors.Is(err, meta.ErrNotFound) {
			return nil
		}
		if err == nil && back != nil {
			found := *back
			found.Replaced = nil
			err = putBack(tx, found, now)
		}
		return err
	})
}

// putBack stores what a lost object replaced. It may be in the trash.
func putBack(tx *meta.Tx, replaced model.Object, at time.Time) error {
	_, err := tx.UntrashObject(replaced.Version, at)
	if errors.Is(err, meta.ErrNotFound) {
		return tx.PutBack(replaced, at)
	}
	return err
}
