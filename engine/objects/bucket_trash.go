package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TrashBucketList returns the deleted buckets of the call's organization that
// can still be restored and match the filter, by when they were deleted, newest
// first.
func (s *Service) TrashBucketList(call *model.Call, filter core.Filter, page core.Page) (core.List[model.TrashedBucket], error) {
	return core.ListRecords(s.core, s.core.Meta.View, call, model.ActionTrashBucketList, (*meta.Tx).TrashedBuckets, page,
		core.Select(filter, func(b model.TrashedBucket) bool { return filter.Admits(b.Project, b.Name, b.DeletedAt) }))
}

// RestoredBucket is a bucket that came back from the trash.
type RestoredBucket struct {
	model.Bucket
	// ExpiryOff means that the bucket does not expire objects any more, because it would have lost some at once.
	ExpiryOff bool
}

// TrashBucketRestore restores a deleted bucket with its objects.
func (s *Service) TrashBucketRestore(ctx context.Context, call *model.Call, id string) (b RestoredBucket, err error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return b, err
	}
	trashed, err := s.trashedBucket(call, id)
	if err != nil {
		return b, err
	}
	counted, err := s.reserveTotals(ctx, call, true, model.Totals{Objects: trashed.ObjectCount, StorageBytes: trashed.SizeBytes})
	if err != nil {
		return b, err
	}
	defer counted()
	err = s.core.Change(call, func(tx *meta.Tx) error {
		return s.core.WithinPlan(tx, call.Organization, func() (err error) {
			if err := nameFree(tx, call.Organization, trashed.Name); err != nil {
				return err
			}
			b.Bucket, err = tx.UntrashBucket(id, s.core.Clock())
			if errors.Is(err, meta.ErrNotFound) {
				return noTrashedBucket(id)
			}
			if err != nil {
				return core.NameTaken(err, model.ResourceBucket, trashed.Name)
			}
			b, err = s.keepRestored(tx, call, b.Bucket)
			return err
		})
	})
	return b, err
}

// keepRestored turns the expiry of a bucket from the trash off if it has objects that have expired, or versions that may
// have, or an old object that cannot be read: they would be removed immediately, for good.
func (s *Service) keepRestored(tx *meta.Tx, call *model.Call, b model.Bucket) (RestoredBucket, error) {
	expired := b.NoncurrentCount > 0 && len(b.Expiry.NoncurrentPrefixes()) > 0
	for _, r := range b.Expiry {
		if r.Days == 0 {
			continue
		}
		before, err := firstVersion(s.core.RetentionClock().Add(-b.Expiry.Life(r.Prefix)))
		if err != nil {
			return RestoredBucket{}, err
		}
		oldest, err := tx.OldestObjects(b.ID, r.Prefix, before, 1)
		if err != nil && !isDamagedRecord(err) {
			return RestoredBucket{Bucket: b}, err
		}
		expired = expired || err != nil || len(oldest) > 0
	}
	if !expired {
		return RestoredBucket{Bucket: b}, nil
	}
	off := BucketChange{Expiry: new(model.Expiry)}
	off.note(call)
	b, err := tx.Buckets().Update(b.ID, func(b *model.Bucket) error {
		s.setExpiry(b, off)
		return nil
	})
	return RestoredBucket{b, true}, err
}

// trashedBucket returns a deleted bucket of the call's organization, and makes it the call's
// resource.
func (s *Service) trashedBucket(call *model.Call, id string) (model.TrashedBucket, error) {
	call.Resource = model.Resource{Type: model.ResourceBucket, ID: id}
	trashed, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.TrashedBucket, error) { return tx.TrashedBuckets().Get(id) })
	if errors.Is(err, meta.ErrNotFound) || err == nil && trashed.Organization != call.Organization {
		return trashed, noTrashedBucket(id)
	}
	call.Resource.Name = trashed.Name
	return trashed, err
}

// TrashBucketPurge permanently removes a deleted bucket.
func (s *Service) TrashBucketPurge(call *model.Call, id string) error {
	trashed, err := s.trashedBucket(call, id)
	if err != nil {
		return err
	}
	defer s.UnlinkSoon()
	return s.purgeBucket(call, trashed, anyway)
}

func noTrashedBucket(id string) error {
	return model.Errorf(model.CodeNotFound, "no bucket %q in the trash; `holdfast trash buckets` shows what is", id)
}

// PurgeBuckets permanently removes the buckets whose retention in the trash has expired.
func (s *Service) PurgeBuckets(ctx context.Context) error {
	return purgeDeleted(ctx, s, (*meta.Tx).TrashedBuckets, func(due []model.TrashedBucket, expired time.Time) error {
		for _, b := range due {
			call := s.core.System(model.ActionBucketPurge, b.Organization, bucketResource(b.Bucket))
			if err := s.purgeBucket(call, b, func(tx *meta.Tx, b model.TrashedBucket) error {
				return keepUnexpired(tx, b.ID, b.DeletedAt, expired)
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// purgeBucket removes a bucket from the trash, unless another caller already has, or admits refuses it as it is now.
func (s *Service) purgeBucket(call *model.Call, b model.TrashedBucket, admits func(*meta.Tx, model.TrashedBucket) error) error {
	call.Note("objects", fmt.Sprint(b.ObjectCount))
	return ignoreKept(s.core.Change(call, func(tx *meta.Tx) error {
		if err := mayPurge(tx, tx.TrashedBuckets(), b.ID, admits); err != nil {
			return err
		}
		return tx.PurgeBucket(b.ID)
	}))
}

// EmptyBuckets permanently removes the deleted buckets of the call's organization
// and returns their number.
func (s *Service) EmptyBuckets(call *model.Call) (int, error) {
	deleted, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.TrashedBucket, error) {
		return core.AllBy(tx.TrashedBuckets(), meta.ByOrganization, meta.Key(call.Organization))
	})
	if err != nil {
		return 0, err
	}
	for i, b := range deleted {
		if err := s.purgeBucket(core.PartOf(call, bucketResource(b.Bucket)), b, anyway); err != nil {
			return i, err
		}
	}
	return len(deleted), nil
}
