package objects

import (
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BucketFilter selects buckets.
type BucketFilter struct {
	core.Filter
	Public *bool
}

// BucketList returns the buckets of the call's organization that match the filter.
func (s *Service) BucketList(call *model.Call, filter BucketFilter, page core.Page) (core.List[model.Bucket], error) {
	selection := core.Select([]any{filter.Filter, filter.Public == nil, filter.Public != nil && *filter.Public}, func(b model.Bucket) bool {
		return filter.Admits(b.Project, b.Name, b.CreatedAt) && (filter.Public == nil || *filter.Public == b.Public)
	})
	if filter.Name != "" {
		return core.ListNamed(s.core, s.core.Meta.ViewFlushed, call, model.ActionBucketList, (*meta.Tx).Buckets, page,
			filter.Name, func(b model.Bucket) string { return b.ID }, selection)
	}
	return core.ListRecords(s.core, s.core.Meta.ViewFlushed, call, model.ActionBucketList, (*meta.Tx).Buckets, page, selection)
}

// BucketNamed returns the bucket of the call's organization with that name, and makes it the call's resource. Its
// counters may be stale.
func (s *Service) BucketNamed(call *model.Call, name string) (model.Bucket, error) {
	call.Resource = model.Resource{Type: model.ResourceBucket, Name: name}
	b, err := s.core.Meta.CachedBucketNamed(call.Organization, name)
	if errors.Is(err, meta.ErrNotFound) {
		return b, model.NotFound(model.ResourceBucket, name)
	}
	if err == nil {
		call.Resource = bucketResource(b)
	}
	return b, err
}

// Buckets returns every bucket of the call's organization, newest first.
func (s *Service) Buckets(call *model.Call) ([]model.Bucket, error) {
	return meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Bucket, error) {
		return core.AllBy(tx.Buckets(), meta.ByOrganization, meta.Key(call.Organization))
	})
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
