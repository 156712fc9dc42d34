package objects

import (
	"context"

	"holdfast/engine/meta"
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

// purgeDeleted calls remove with the expired records of a trash table, in batches.
func purgeDeleted[T any](ctx context.Context, s *Service, table func(*meta.Tx) meta.Table[T], remove func([]T) error) error {
	if s.core.KeepsAll() {
		return nil
	}
	until, err := s.purgeBound(s.core.Clock().Add(-s.core.ObjectTrashRetention()))
	if err != nil {
		return err
	}
	bound := meta.DeletionKey(until)
	for ctx.Err() == nil {
		due, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]T, error) { return table(tx).Before(meta.ByDeletion, bound, ExpireBatch) })
		if len(due) == 0 { // except for unreadable records
			return err
		}
		if err := remove(due); err != nil {
			return err
		}
		s.UnlinkSoon()
	}
	return nil
}
