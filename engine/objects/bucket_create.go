package objects

import (
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// NewBucket holds the properties of a bucket to create.
type NewBucket struct {
	Project string
	Name    string
	Public  bool
}

// BucketCreate creates a bucket.
func (s *Service) BucketCreate(call *model.Call, in NewBucket) (model.Bucket, error) {
	if err := model.ValidateBucketName("name", in.Name); err != nil {
		return model.Bucket{}, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.Bucket{}, err
	}
	now := s.core.Clock()
	b := model.Bucket{
		ID: s.core.NewID(model.ResourceBucket), Organization: call.Organization, Project: in.Project,
		Name: in.Name, Public: in.Public, CreatedAt: now, UpdatedAt: now,
	}
	call.Resource = bucketResource(b)
	err := s.core.Change(call, func(tx *meta.Tx) error {
		if _, err := core.ProjectOf(tx, call.Organization, in.Project); err != nil {
			return err
		}
		return s.core.WithinPlan(tx, call.Organization, func() error {
			return core.NameTaken(tx.Buckets().Insert(b), model.ResourceBucket, b.Name)
		})
	})
	return b, err
}

func bucketResource(b model.Bucket) model.Resource {
	return model.Resource{Type: model.ResourceBucket, ID: b.ID, Name: b.Name}
}
