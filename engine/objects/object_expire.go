package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// ExpireObjects removes the objects and the versions that have reached the age set by the rules of their
// buckets. They bypass the trash, which holds only deliberately deleted objects.
// Where versions are kept, current objects get a delete marker.
func (s *Service) ExpireObjects(ctx context.Context) error {
	var buckets []model.Bucket
	if err := s.core.Meta.View(func(tx *meta.Tx) error {
		return tx.Buckets().All(func(b model.Bucket) error {
			if len(b.Expiry) > 0 {
				buckets = append(buckets, b)
			}
			return nil
		})
	}); err != nil {
		return err
	}
	s.versionWalks.keepOnly(buckets)
	var errs []error
	for _, b := range buckets {
		for _, r := range b.Expiry {
			if r.Days > 0 {
				errs = append(errs, s.expireBucket(ctx, b.ID, r.Prefix))
			}
		}
		errs = append(errs, s.expireVersions(ctx, b))
	}
	return errors.Join(errs...)
}

// expireBucket removes the objects of a bucket whose keys begin with prefix. What cannot be read stays, and keeps no others; it
// is the error once they are removed.
func (s *Service) expireBucket(ctx context.Context, bucket, prefix string) error {
	for ctx.Err() == nil {
		removed, err := s.expireSome(bucket, prefix)
		if removed == 0 {
			return err
		}
		s.UnlinkSoon()
	}
	return nil
}

// hasExpired reports whether the rules of the bucket remove the object, if the clock is behind once it is right.
func (s *Service) hasExpired(b model.Bucket, o model.Object) bool {
	life := b.Expiry.Life(o.Key)
	return life > 0 && o.LastModified.Before(s.core.RetentionClock().Add(-life))
}

// expireSome removes up to ExpireBatch objects that have expired by the rule for that prefix, as the bucket says now. An error
// beside some that were removed is about others, which cannot be read.
func (s *Service) expireSome(bucket, prefix string) (removed int, err error) {
	release := s.locks.bucket(bucket) // so that no upload replaces an object being removed, and no change keeps it longer
	defer release()
	b, err := s.core.Meta.CachedBucket(bucket)
	if errors.Is(err, meta.ErrNotFound) || err == nil && b.Expiry.Life(prefix) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	before, ok := s.core.RemovableBefore(b.Expiry.Life(prefix))
	if !ok {
		return 0, nil
	}
	oldest, damage := s.oldestObjects(bucket, prefix, before)
	if len(oldest) == 0 {
		return 0, damage
	}
	removed, err = s.removeExpired(b, oldest)
	return removed, errors.Join(damage, err)
}

// removeExpired removes the objects, except those that were replaced after the lookup, and returns the number removed, and as
// an error the damage to versions in whose place a delete marker would come.
func (s *Service) removeExpired(b model.Bucket, objects []model.Object) (int, error) {
	call := s.core.System(model.ActionObjectExpire, b.Organization, bucketResource(b))
	now := s.core.RetentionClock()
	markers := make([]model.Object, len(objects))
	for i, o := range objects {
		markers[i] = s.newMarker(b, o.Key, now)
	}
	removed, damage, err := s.removeTogether(call, "objects", func(tx *meta.Tx) (int, error, error) {
		return removeUnchanged(tx, b, objects, markers, now)
	})
	return removed, errors.Join(damage, err)
}

// removeTogether removes, in one transaction, what remove does, and notes its number in the audit entry, which there is only if
// something was removed. It returns that number and the damage that remove met.
func (s *Service) removeTogether(call *model.Call, what string, remove func(*meta.Tx) (removed int, damage, err error)) (removed int, damage, err error) {
	err = s.core.Change(call, func(tx *meta.Tx) error {
		if err := tx.Batched(func() (err error) {
			removed, damage, err = remove(tx)
			return err
		}); err != nil {
			return err
		}
		if removed == 0 {
			return errKept
		}
		call.Note(what, fmt.Sprint(removed))
		return nil
	})
	if err != nil {
		removed = 0
	}
	return removed, damage, ignoreKept(err)
}

// removeUnchanged removes those of the objects that are current, or puts the markers in their place. It returns their number and
// the damage to versions in whose place a marker would come.
func removeUnchanged(tx *meta.Tx, b model.Bucket, objects, markers []model.Object, now time.Time) (removed int, damage, err error) {
	for i, o := range objects {
		current, err := tx.Object(o.Bucket, o.Key)
		if errors.Is(err, meta.ErrNotFound) || err == nil && current.Version != o.Version {
			continue
		}
		if !markers[i].Versioned {
			if _, err := tx.ObjectVersion(o.Bucket, o.Key, model.NullVersion); isDamagedRecord(err) {
				damage = errors.Join(damage, err)
				continue
			}
		}
		if b.Versioning == model.VersioningOff {
			_, err = tx.DeleteObject(o.Bucket, o.Key, now)
		} else {
			_, err = tx.PutObject(markers[i])
		}
		if err != nil {
			return removed, damage, err
		}
		removed++
	}
	return removed, damage, nil
}

// oldestObjects returns the objects whose keys begin with prefix that were last written before that time. A version starts
// with the time of the write.
func (s *Service) oldestObjects(bucket, prefix string, before time.Time) (objects []model.Object, err error) {
	version, err := firstVersion(before)
	if err != nil {
		return nil, err
	}
	return meta.Value(s.core.Meta.ViewFlushed, func(tx *meta.Tx) ([]model.Object, error) {
		return tx.OldestObjects(bucket, prefix, version, ExpireBatch)
	})
}

// firstVersion returns the smallest id of a version that is written at that time.
func firstVersion(at time.Time) (string, error) {
	var version ulid.ULID
	if err := version.SetTime(uint64(max(at.UnixMilli(), 0))); err != nil { // it may be before 1970
		return "", fmt.Errorf("expire objects: %w", err)
	}
	return strings.ToLower(version.String()), nil
}

// isDamagedRecord reports whether an error means that a record of the metadata cannot be read.
func isDamagedRecord(err error) bool {
	_, damaged := errors.AsType[*meta.CorruptError](err)
	return damaged
}
