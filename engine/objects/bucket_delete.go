package objects

import (
	"fmt"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BucketDelete removes a bucket; one that holds objects only with force, and
// then the objects with it. It returns until when the operator can bring them
// back, zero for not at all.
func (s *Service) BucketDelete(call *model.Call, id string, force bool) (until time.Time, err error) {
	if _, err := s.bucket(call, id); err != nil {
		return until, err
	}
	release := s.locks.bucket(id)
	defer release()
	now := s.core.Clock()
	until = s.objectTrashUntil(now)
	err = s.core.Change(call, func(tx *meta.Tx) error {
		b, err := bucketOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		if b.ObjectCount > 0 && !force {
			return model.Errorf(model.CodeConflict,
				"the bucket holds %d objects; delete them first, or send ?force=true to delete them with it", b.ObjectCount)
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

// objectTrashUntil returns until when what of objects is deleted at that time can
// be brought back, zero for not at all.
func (s *Service) objectTrashUntil(at time.Time) (until time.Time) {
	if s.core.Config.ObjectTrashRetention > 0 {
		until = at.Add(s.core.Config.ObjectTrashRetention)
	}
	return until
}
