package objects

import (
	"fmt"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BucketDelete deletes a bucket. Force deletes a bucket together with the objects in it, unless one is locked. It returns until when
// they can be restored, the zero time if they cannot be restored.
func (s *Service) BucketDelete(call *model.Call, id string, force bool) (until time.Time, err error) {
	_, release, err := s.lockBucket(call, id)
	if err != nil {
		return until, err
	}
	defer release()
	now := s.core.RetentionClock()
	until = s.objectTrashUntil(now)
	err = s.core.Change(call, func(tx *meta.Tx) error {
		b, err := bucketOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		if err := call.Match(b.Tag()); err != nil {
			return err
		}
		if b.ObjectCount > 0 && !force {
			return model.Errorf(model.CodeConflict,
				"the bucket holds %d objects; delete them first, or delete it with them by force", b.ObjectCount)
		}
		if err := s.refuseLockedVersion(tx, call, id); err != nil {
			return err
		}
		call.Details = map[string]string{"objects": fmt.Sprint(b.ObjectCount)}
		if until.IsZero() {
			return tx.DropBucket(id)
		}
		return tx.TrashBucket(id, now)
	})
	if err == nil {
		s.UnlinkSoon()
	}
	return until, err
}

// keepsRemoved reports whether versions that are deleted or replaced move to the trash.
func (s *Service) keepsRemoved() bool { return s.core.Config.ObjectTrashRetention > 0 }

// objectTrashUntil returns until when objects deleted at that time can be restored, the zero time if they cannot be.
func (s *Service) objectTrashUntil(at time.Time) (until time.Time) {
	if s.keepsRemoved() {
		until = at.Add(s.core.Config.ObjectTrashRetention)
	}
	return until
}
