package objects

import (
	"context"
	"errors"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// UnlinkSoon removes discarded blobs in the background. The next start retries failed removals.
func (s *Service) UnlinkSoon() {
	if !s.opened.Load() || s.core.Lifetime.Err() != nil {
		return
	}
	select {
	case s.unlinks <- struct{}{}:
	default: // a removal is about to begin
		return
	}
	s.core.Work.Go(func() {
		<-s.unlinks
		if err := s.core.RemoveDiscarded(); err != nil {
			s.core.Log.Error("remove discarded blobs", "error", err)
		}
	})
}

// ExpireBatch is the number of objects removed in one transaction.
const ExpireBatch = 500

// purgeDeleted calls remove with the records of a trash table that were deleted before expired, in batches. What happens
// between its look-up and the removal is for remove to see.
func purgeDeleted[T any](ctx context.Context, s *Service, table func(*meta.Tx) meta.Table[T], remove func(due []T, expired time.Time) error) error {
	for ctx.Err() == nil {
		expired, ok := s.core.RemovableBefore(s.core.ObjectTrashRetention())
		if !ok {
			return nil
		}
		due, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]T, error) {
			bound, err := purgeBound(tx, expired)
			if err != nil {
				return nil, err
			}
			return table(tx).Before(meta.ByDeletion, meta.DeletionKey(bound), ExpireBatch)
		})
		if len(due) == 0 { // except for unreadable records
			return err
		}
		if err := remove(due, expired); err != nil {
			return err
		}
		s.UnlinkSoon()
	}
	return nil
}

// purgeBound returns the time before which what was deleted may be purged: nothing that a running restore needs.
func purgeBound(tx *meta.Tx, expired time.Time) (time.Time, error) {
	running, err := runningRestores(tx)
	for _, r := range running {
		if r.Target.Before(expired) {
			expired = r.Target
		}
	}
	return expired, err
}

// keepUnexpired returns errKept if what was deleted from a bucket at that time has not expired, or if a restore of the bucket
// that is running needs it. A restore that begins after the purge is refused if it needs it.
func keepUnexpired(tx *meta.Tx, bucket string, deletedAt, expired time.Time) error {
	if !deletedAt.Before(expired) {
		return errKept
	}
	r, err := tx.BucketRestores().Get(bucket)
	switch {
	case errors.Is(err, meta.ErrNotFound):
		return nil
	case err == nil && r.Status == model.BucketRestoreRunning && !deletedAt.Before(r.Target):
		return errKept
	}
	return err
}

// errKept means that nothing is removed from the trash.
var errKept = errors.New("kept in the trash")

func ignoreKept(err error) error {
	if errors.Is(err, errKept) {
		return nil
	}
	return err
}

// mayPurge returns errKept if a record is not in the trash any more, or the error of admits for what it is now.
func mayPurge[T any](tx *meta.Tx, table meta.Table[T], id string, admits func(*meta.Tx, T) error) error {
	record, err := table.Get(id)
	if errors.Is(err, meta.ErrNotFound) {
		return errKept
	}
	if err != nil {
		return err
	}
	return admits(tx, record)
}

// anyway admits everything.
func anyway[T any](*meta.Tx, T) error { return nil }
