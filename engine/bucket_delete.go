package engine

import (
	"fmt"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BucketDelete removes a bucket; one that holds objects only with force, and
// then the objects with it. It returns until when the operator can bring them
// back, zero for not at all.
func (e *Engine) BucketDelete(call *model.Call, id string, force bool) (until time.Time, err error) {
	if _, err := e.bucket(call, id); err != nil {
		return until, err
	}
	release := e.order.bucket(id)
	defer release()
	now := e.clock()
	until = e.objectTrashUntil(now)
	err = e.change(call, func(tx *meta.Tx) error {
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
		e.unlinkSoon()
	}
	return until, err
}

// objectTrashUntil returns until when what of objects is deleted at that time can
// be brought back, zero for not at all.
func (e *Engine) objectTrashUntil(at time.Time) (until time.Time) {
	if e.cfg.ObjectTrashRetention > 0 {
		until = at.Add(e.cfg.ObjectTrashRetention)
	}
	return until
}

// unlinkSoon removes discarded blobs without making the caller wait. What
// fails is tried again at the next start.
func (e *Engine) unlinkSoon() {
	if !e.opened.Load() || e.ctx.Err() != nil {
		return
	}
	select {
	case e.unlinks <- struct{}{}:
	default: // one is about to begin
		return
	}
	e.work.Go(func() {
		<-e.unlinks
		if err := e.removeDiscarded(); err != nil {
			e.log.Error("remove discarded blobs", "error", err)
		}
	})
}
