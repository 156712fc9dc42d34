package objects

import (
	"context"

	"holdfast/engine/meta"
)

// UnlinkSoon removes discarded blobs without making the caller wait. What
// fails is tried again at the next start.
func (s *Service) UnlinkSoon() {
	if !s.opened.Load() || s.core.Lifetime.Err() != nil {
		return
	}
	select {
	case s.unlinks <- struct{}{}:
	default: // one is about to begin
		return
	}
	s.core.Work.Go(func() {
		<-s.unlinks
		if err := s.core.RemoveDiscarded(); err != nil {
			s.core.Log.Error("remove discarded blobs", "error", err)
		}
	})
}

// ExpireBatch is how many objects are removed in one transaction.
const ExpireBatch = 500

// purgeDeleted calls remove with the records of a table of the trash, some at a
// time, that have been there for as long as objects are kept.
func purgeDeleted[T any](ctx context.Context, s *Service, table func(*meta.Tx) meta.Table[T], remove func([]T) error) error {
	if s.core.KeepsAll() {
		return nil
	}
	bound := meta.DeletionKey(s.core.Clock().Add(-s.core.Config.ObjectTrashRetention))
	for ctx.Err() == nil {
		var due []T
		err := s.core.Meta.View(func(tx *meta.Tx) (err error) {
			due, err = table(tx).Before(meta.ByDeletion, bound, ExpireBatch)
			return err
		})
		if len(due) == 0 { // but for what cannot be read
			return err
		}
		if err := remove(due); err != nil {
			return err
		}
		s.UnlinkSoon()
	}
	return nil
}
