package objects

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BucketConfigure changes the settings of a bucket that only S3 clients have. What names the setting in the audit log.
func (s *Service) BucketConfigure(call *model.Call, id, what string, change func(*model.Bucket) error) error {
	if _, err := s.bucket(call, id); err != nil {
		return err
	}
	call.Note("setting", what)
	return s.core.Change(call, func(tx *meta.Tx) error {
		if _, err := bucketOf(tx, call.Organization, id); err != nil {
			return err
		}
		_, err := tx.Buckets().Update(id, func(b *model.Bucket) error {
			was := b.PublicRights()
			if err := change(b); err != nil {
				return err
			}
			notePublic(call, was, b.PublicRights())
			b.UpdatedAt = s.core.Clock()
			return nil
		})
		return err
	})
}

// notePublic has the audit log tell who may read a bucket, if that has changed.
func notePublic(call *model.Call, was, is model.PublicRights) {
	if is.Read != was.Read {
		call.Note("public", fmt.Sprint(is.Read))
	}
	if !slices.Equal(is.Prefixes, was.Prefixes) {
		call.Note("public_prefixes", strings.Join(is.Prefixes, " "))
	}
}

// BucketForEverybody returns the bucket that a name means to a caller without a key: the one in any organization that has
// had the name longest, and only if some of it is public.
func (s *Service) BucketForEverybody(call *model.Call, name string) (model.Bucket, error) {
	call.Resource = model.Resource{Type: model.ResourceBucket, Name: name}
	named, err := s.BucketsNamed(name)
	if err != nil {
		return model.Bucket{}, err
	}
	if len(named) == 0 || !named[0].PublicRights().Any() {
		return model.Bucket{}, model.NotFound(model.ResourceBucket, name)
	}
	return s.anonymousBucket(call, named[0].ID)
}

// BucketWebsite returns the bucket whose website a name means to a caller without a key: the one in any organization that
// has had the name longest, and only if it has a website.
func (s *Service) BucketWebsite(call *model.Call, name string) (model.Bucket, error) {
	call.Resource = model.Resource{Type: model.ResourceBucket, Name: name}
	named, err := s.BucketsNamed(name)
	if err != nil {
		return model.Bucket{}, err
	}
	if len(named) == 0 || named[0].Website == nil {
		return model.Bucket{}, model.NotFound(model.ResourceBucket, name)
	}
	return s.anonymousBucket(call, named[0].ID)
}

// BucketsNamed returns the buckets of that name in every organization, first the one that has had it longest. Their
// counters may be stale.
func (s *Service) BucketsNamed(name string) ([]model.Bucket, error) {
	named, err := s.core.Meta.CachedBucketsNamed(name)
	if errors.Is(err, meta.ErrNotFound) {
		return nil, nil
	}
	return named, err
}
