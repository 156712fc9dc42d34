package engine

import (
	"fmt"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BucketChange is what of a bucket is to change; nil leaves it as it is.
type BucketChange struct {
	Public          *bool
	ExpireAfterDays *int
}

// BucketGet returns a bucket.
func (e *Engine) BucketGet(call *model.Call, id string) (model.Bucket, error) {
	if _, err := e.bucket(call, id); err != nil {
		return model.Bucket{}, err
	}
	var b model.Bucket
	err := e.meta.View(func(tx *meta.Tx) (err error) { // with its counters as they are
		b, err = bucketOf(tx, call.Organization, id)
		return err
	})
	return b, err
}

// BucketUpdate changes a bucket.
func (e *Engine) BucketUpdate(call *model.Call, id string, change BucketChange) (model.Bucket, error) {
	if change.ExpireAfterDays != nil {
		if err := model.ValidateExpireDays("expire_after_days", *change.ExpireAfterDays); err != nil {
			return model.Bucket{}, err
		}
	}
	if _, err := e.bucket(call, id); err != nil {
		return model.Bucket{}, err
	}
	change.note(call)
	var b model.Bucket
	err := e.change(call, func(tx *meta.Tx) (err error) {
		if _, err := bucketOf(tx, call.Organization, id); err != nil {
			return err
		}
		b, err = tx.Buckets().Update(id, func(b *model.Bucket) error {
			if change.Public != nil {
				b.Public = *change.Public
			}
			if change.ExpireAfterDays != nil {
				b.ExpireAfterDays = *change.ExpireAfterDays
			}
			b.UpdatedAt = e.clock()
			return nil
		})
		return err
	})
	return b, err
}

func (c BucketChange) note(call *model.Call) {
	if c.Public != nil {
		call.Note("public", fmt.Sprint(*c.Public))
	}
	if c.ExpireAfterDays != nil {
		call.Note("expire_after_days", fmt.Sprint(*c.ExpireAfterDays))
	}
}
