package engine

import (
	"fmt"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BucketDelete removes a bucket; one that holds objects only with force, and
// then the objects with it.
func (e *Engine) BucketDelete(call *model.Call, id string, force bool) error {
	if _, err := e.bucket(call, id); err != nil {
		return err
	}
	release := e.order.bucket(id)
	defer release()
	err := e.change(call, func(tx *meta.Tx) error {
		b, err := bucketOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		if b.ObjectCount > 0 && !force {
			return model.Errorf(model.CodeConflict,
				"the bucket holds %d objects; delete them first, or send ?force=true to delete them with it", b.ObjectCount)
		}
		call.Details = map[string]string{"objects": fmt.Sprint(b.ObjectCount)}
		return tx.DropBucket(id)
	})
	if err != nil {
		return err
	}
	e.unlinkSoon()
	return nil
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
