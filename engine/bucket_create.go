package engine

import (
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// NewBucket is what a bucket is made of.
type NewBucket struct {
	Project string
	Name    string
	Public  bool
}

// BucketCreate makes a bucket.
func (e *Engine) BucketCreate(call *model.Call, in NewBucket) (model.Bucket, error) {
	if err := model.ValidateBucketName("name", in.Name); err != nil {
		return model.Bucket{}, err
	}
	if err := e.onlyOnce(call); err != nil {
		return model.Bucket{}, err
	}
	now := e.clock()
	b := model.Bucket{
		ID: e.newID(model.ResourceBucket), Organization: call.Organization, Project: in.Project,
		Name: in.Name, Public: in.Public, CreatedAt: now, UpdatedAt: now,
	}
	call.Resource = bucketResource(b)
	err := e.change(call, func(tx *meta.Tx) error {
		if _, err := projectOf(tx, call.Organization, in.Project); err != nil {
			return err
		}
		return e.withinPlan(tx, call.Organization, func() error {
			return nameTaken(tx.Buckets().Insert(b), model.ResourceBucket, b.Name)
		})
	})
	return b, err
}

func bucketResource(b model.Bucket) model.Resource {
	return model.Resource{Type: model.ResourceBucket, ID: b.ID, Name: b.Name}
}
