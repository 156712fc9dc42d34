package objects

import (
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BucketList returns the buckets of the call's organization.
func (s *Service) BucketList(call *model.Call, page core.Page) (core.List[model.Bucket], error) {
	return core.ListRecords(s.core, s.core.Meta.ViewFlushed, call, model.ActionBucketList, (*meta.Tx).Buckets, page,
		func(b model.Bucket) string { return b.ID })
}

// bucket returns a bucket of the call's organization and makes it the call's resource. Its counters may be stale: only
// uploads change them, and uploads use only the bucket's organization.
func (s *Service) bucket(call *model.Call, id string) (model.Bucket, error) {
	call.Resource = model.Resource{Type: model.ResourceBucket, ID: id}
	b, err := s.core.Meta.CachedBucket(id)
	if b, err = ownBucket(b, err, call.Organization, id); err == nil {
		call.Resource = bucketResource(b)
	}
	return b, err
}

func bucketOf(tx *meta.Tx, organization, id string) (model.Bucket, error) {
	b, err := tx.Buckets().Get(id)
	return ownBucket(b, err, organization, id)
}

// ownBucket hides buckets of other organizations.
func ownBucket(b model.Bucket, err error, organization, id string) (model.Bucket, error) {
	if errors.Is(err, meta.ErrNotFound) || err == nil && b.Organization != organization {
		return model.Bucket{}, model.NotFound(model.ResourceBucket, id)
	}
	return b, err
}
