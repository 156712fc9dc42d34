package objects

import (
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// NewBucket holds the properties of a bucket to create.
type NewBucket struct {
	Project string // "" means the oldest
	Name    string
	Public  bool
	Lock    bool // with Object Lock, and so with versioning
	Tags    map[string]string
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
		Name: in.Name, Public: in.Public, Tags: in.Tags, HistorySince: now, CreatedAt: now, UpdatedAt: now,
	}
	if in.Lock {
		b.Versioning, b.Lock = model.VersioningEnabled, &model.BucketLock{}
	}
	call.Resource = bucketResource(b)
	err := s.core.Change(call, func(tx *meta.Tx) (err error) {
		if in.Project == "" {
			if b.Project, err = tx.FirstProject(call.Organization); err != nil {
				return err
			}
		} else if _, err := core.ProjectOf(tx, call.Organization, in.Project); err != nil {
			return err
		}
		if err := nameFree(tx, call.Organization, b.Name); err != nil {
			return err
		}
		return s.core.WithinPlan(tx, call.Organization, func() error {
			return core.NameTaken(tx.InsertBucket(&b), model.ResourceBucket, b.Name)
		})
	})
	return b, err
}

// nameFree refuses a name that a bucket in any project of the organization has: in the S3 protocol the name and the
// organization of the key are all that identify a bucket.
func nameFree(tx *meta.Tx, organization, name string) error {
	_, err := tx.BucketNamed(organization, name)
	switch {
	case errors.Is(err, meta.ErrNotFound):
		return nil
	case err == nil:
		return core.NameTaken(meta.ErrExists, model.ResourceBucket, name)
	}
	return err
}

func bucketResource(b model.Bucket) model.Resource {
	return model.Resource{Type: model.ResourceBucket, ID: b.ID, Name: b.Name}
}
