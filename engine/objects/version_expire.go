package objects

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Versions that are not current have no index by age. So the sweep looks at all of those that a rule concerns, a part at a
// time, and rests after the last one.
const (
	// versionPart is how many versions are read in one transaction.
	versionPart = 1000
	// versionParts is how many parts a sweep reads of a bucket.
	versionParts = 100
	// versionRest is how long a bucket rests once all its versions were looked at.
	versionRest = time.Hour
)

// versionWalk is how far the sweep has come through the versions of a bucket.
type versionWalk struct {
	last  string    // where it goes on, "" from the start
	ended time.Time // when it last came to the end
}

// rests reports whether nothing is due yet.
func (w versionWalk) rests(now time.Time) bool {
	return w.last == "" && !core.IsPast(now, w.ended, versionRest)
}

// versionWalks are the walks by bucket.
type versionWalks struct {
	mu sync.Mutex
	of map[string]versionWalk
}

func newVersionWalks() *versionWalks { return &versionWalks{of: map[string]versionWalk{}} }

func (w *versionWalks) get(bucket string) versionWalk {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[bucket]
}

func (w *versionWalks) set(bucket string, walk versionWalk) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[bucket] = walk
}

// startAnew has the next sweep begin with the first version of a bucket, as after a change of its rules.
func (w *versionWalks) startAnew(bucket string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, bucket)
}

// keepOnly forgets the walks of other buckets.
func (w *versionWalks) keepOnly(buckets []model.Bucket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := make(map[string]versionWalk, len(buckets))
	for _, b := range buckets {
		if walk, ok := w.of[b.ID]; ok {
			kept[b.ID] = walk
		}
	}
	w.of = kept
}

// expireVersions removes the versions of a bucket that its rules keep no longer, and goes on at the next sweep if there are
// many.
func (s *Service) expireVersions(ctx context.Context, b model.Bucket) error {
	prefixes := b.Expiry.NoncurrentPrefixes()
	walk := s.versionWalks.get(b.ID)
	if len(prefixes) == 0 || walk.rests(s.core.Clock()) {
		return nil
	}
	parts := 0
	for _, prefix := range prefixes {
		if walk.last > prefix && !strings.HasPrefix(walk.last, prefix) {
			continue // it is behind the walk
		}
		for more := true; more; parts++ {
			if parts == versionParts || ctx.Err() != nil {
				return nil
			}
			var err error
			walk.last, more, err = s.expirePart(b.ID, prefix, walk.last)
			s.versionWalks.set(b.ID, walk) // also after an error, which would end every sweep at this part
			if err != nil {
				return err
			}
		}
	}
	s.versionWalks.set(b.ID, versionWalk{ended: s.core.Clock()})
	return nil
}

// expirePart looks at the next part of the versions, and returns where the one after it begins.
func (s *Service) expirePart(bucket, prefix, last string) (next string, more bool, err error) {
	var part meta.Noncurrent
	err = s.core.Meta.View(func(tx *meta.Tx) (err error) {
		part, err = tx.NoncurrentVersions(bucket, prefix, last, versionPart)
		return err
	})
	if err != nil && part.Last == "" {
		return last, false, err
	}
	if err != nil { // one that cannot be read stays, and keeps no others
		s.core.Log.Error("look at the versions of a bucket that may have expired", "bucket", bucket, "error", err)
	}
	if part.Last == "" {
		return last, false, nil
	}
	return part.Last, part.More, s.expireSomeVersions(bucket, part.Versions)
}

// expireSomeVersions removes those of the versions that have expired, as the bucket says now.
func (s *Service) expireSomeVersions(bucket string, versions []meta.NoncurrentVersion) error {
	if due, _, err := s.dueVersions(bucket, versions); err != nil || len(due) == 0 {
		return err
	}
	defer s.locks.bucket(bucket)() // so that no change keeps them longer or locks one
	due, b, err := s.dueVersions(bucket, versions)
	if err != nil {
		return err
	}
	now, ok := s.core.RemovableBefore(0)
	if !ok {
		return nil
	}
	for batch := range slices.Chunk(due, ExpireBatch) {
		if err := s.removeVersions(b, batch, now); err != nil {
			return err
		}
	}
	s.UnlinkSoon()
	return nil
}

// dueVersions returns those of the versions that the rules of their bucket remove, as it is now.
func (s *Service) dueVersions(bucket string, versions []meta.NoncurrentVersion) (due []meta.NoncurrentVersion, b model.Bucket, err error) {
	b, err = s.core.Meta.CachedBucket(bucket)
	if errors.Is(err, meta.ErrNotFound) {
		return nil, b, nil
	}
	now := s.core.Clock()
	for _, v := range versions {
		if err == nil && noncurrentExpired(b, v, now) {
			due = append(due, v)
		}
	}
	return due, b, err
}

// noncurrentExpired reports whether the rules of the bucket remove the version: one that has not been current for so long,
// or a delete marker of that age without any other version of its key.
func noncurrentExpired(b model.Bucket, v meta.NoncurrentVersion, now time.Time) bool {
	life, since := b.Expiry.NoncurrentLife(v.Key), noncurrentSince(v)
	return life > 0 && !since.IsZero() && since.Before(now.Add(-life))
}

// noncurrentSince returns from when on the age of a version counts, zero if it does not.
func noncurrentSince(v meta.NoncurrentVersion) time.Time {
	if v.Alone {
		return v.LastModified
	}
	return v.NoncurrentAt
}

// removeVersions removes versions for good that have expired now, except those that are locked, that a restore needs, that have
// changed since they were looked up, or of whose key a record cannot be read.
func (s *Service) removeVersions(b model.Bucket, versions []meta.NoncurrentVersion, now time.Time) error {
	call := s.core.System(model.ActionObjectExpire, b.Organization, bucketResource(b))
	_, damage, err := s.removeTogether(call, "versions", func(tx *meta.Tx) (int, error, error) {
		return s.removeUnrefused(tx, call, b, versions, now)
	})
	if damage != nil {
		s.core.Log.Error("remove versions of a bucket that have expired: what cannot be read stays", "bucket", b.ID, "error", damage)
	}
	return err
}

// removeUnrefused removes those of the versions that refuseExpiry does not refuse, and returns their number and the damage that
// it met.
func (s *Service) removeUnrefused(tx *meta.Tx, call *model.Call, b model.Bucket, versions []meta.NoncurrentVersion, now time.Time) (removed int, damage, err error) {
	for _, v := range versions {
		err := s.refuseExpiry(tx, call, b, v, now)
		switch {
		case errors.Is(err, meta.ErrNotFound) || errors.Is(err, errKept) || errors.Is(err, ErrLocked):
			continue
		case isDamagedRecord(err):
			damage = errors.Join(damage, err)
			continue
		case err != nil:
			return removed, damage, err
		}
		if err := tx.ExpireVersion(v, s.core.RetentionClock()); err != nil {
			return removed, damage, err
		}
		removed++
	}
	return removed, damage, nil
}

// refuseExpiry refuses to remove a version that is not what it was, that a restore needs, or that is locked.
func (s *Service) refuseExpiry(tx *meta.Tx, call *model.Call, b model.Bucket, v meta.NoncurrentVersion, now time.Time) error {
	found, err := tx.Unchanged(v)
	if err != nil {
		return err
	}
	if err := keepUnexpired(tx, b.ID, noncurrentSince(v), now.Add(-b.Expiry.NoncurrentLife(v.Key))); err != nil {
		return err
	}
	return s.refuseLocked(call, found, false)
}
