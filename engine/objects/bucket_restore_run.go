package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/parallel"
)

const (
	// restorePage is how many keys a restore changes in one transaction.
	restorePage = 500
	// restoreCopies is how many versions a restore copies at once.
	restoreCopies = 8
)

// runRestore carries out the plan of a bucket until it is done, fails, or ctx ends.
func (s *Service) runRestore(ctx context.Context, bucket string) {
	for ctx.Err() == nil {
		more, err := s.restoreStep(ctx, bucket)
		switch {
		case ctx.Err() != nil || model.CodeOf(err) == model.CodeReadOnly:
			return // the next start continues
		case err != nil || !more:
			s.endRestore(bucket, err)
			return
		}
	}
}

// restoreStep does the next step of a plan, and reports whether there are more.
func (s *Service) restoreStep(ctx context.Context, bucket string) (more bool, err error) {
	if err := s.core.ReadOnly(); err != nil {
		return false, err
	}
	r, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.BucketRestore, error) { return tx.BucketRestores().Get(bucket) })
	if err != nil {
		return false, err
	}
	if len(r.Copies) > 0 {
		return true, s.restoreVersions(ctx, r)
	}
	return s.restoreKeys(r)
}

// endRestore records how a restore ended.
func (s *Service) endRestore(bucket string, cause error) {
	call := s.core.System(model.ActionBucketRestoreEnd, "", model.Resource{Type: model.ResourceBucket, ID: bucket})
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		r, err := tx.BucketRestores().Update(bucket, func(r *model.BucketRestore) error {
			r.Status, r.CompletedAt, r.Copies = model.BucketRestoreCompleted, s.core.RetentionClock(), nil
			if cause != nil {
				r.Status, r.Error = model.BucketRestoreFailed, model.PublicMessage(cause)
			}
			return nil
		})
		if err != nil {
			return err
		}
		call.Organization = r.Organization
		noteCounts(call, r.Counts)
		return s.core.Audit(tx, call, cause)
	})
	if err != nil && !errors.Is(err, meta.ErrNotFound) { // the bucket may be gone
		s.core.Log.Error("the end of a restore cannot be recorded; the next start continues it", "bucket", bucket, "error", err)
	}
	if cause != nil {
		s.core.Log.Error("the restore of a bucket failed", "bucket", bucket, "error", cause)
	}
	s.UnlinkSoon()
}

func noteCounts(call *model.Call, c model.BucketRestoreCount) {
	call.Note("restored", fmt.Sprint(c.Restored))
	call.Note("removed", fmt.Sprint(c.Removed))
	call.Note("skipped", fmt.Sprint(c.Skipped))
}

// restoreKeys brings the next keys back, and reports whether there are more.
func (s *Service) restoreKeys(r model.BucketRestore) (more bool, err error) {
	release := s.locks.bucket(r.Bucket)
	defer release()
	plans, more, err := s.planKeys(r)
	if err != nil || len(plans) == 0 {
		return false, err
	}
	copies, err := s.restorePlanned(r, plans)
	return more || copies > 0, err
}

// restoredBucket returns the bucket of a restore, unless something that the restore needs is gone.
func (s *Service) restoredBucket(tx *meta.Tx, r model.BucketRestore) (model.Bucket, error) {
	b, err := tx.Buckets().Get(r.Bucket)
	if errors.Is(err, meta.ErrNotFound) {
		return b, model.Errorf(model.CodeConflict, "the bucket was deleted meanwhile")
	}
	if err == nil {
		err = s.refuseTarget(b, r.Target)
	}
	return b, err
}

// planKeys returns what to do with the next keys. Nothing changes them while the bucket is locked, but what they need may
// be removed from the trash.
func (s *Service) planKeys(r model.BucketRestore) (plans []keyPlan, more bool, err error) {
	var b model.Bucket
	var states []meta.KeyState
	err = s.core.Meta.ViewFlushed(func(tx *meta.Tx) (err error) {
		if b, err = s.restoredBucket(tx, r); err == nil {
			states, more, err = tx.KeyStates(b.ID, r.After, r.Target, restorePage)
		}
		return err
	})
	now, locks := s.core.RetentionClock(), s.core.LockClock()
	for _, state := range states {
		plan := s.decide(b, r, state)
		plan.locks = locks
		if plan.act == keyRemoved {
			plan.marker = s.newMarker(b, state.Key, now)
		}
		plans = append(plans, plan)
	}
	return plans, more, err
}

// restorePlanned carries out the plans and returns how many versions are left to be copied.
func (s *Service) restorePlanned(r model.BucketRestore, plans []keyPlan) (left int, err error) {
	call := s.core.System(model.ActionObjectsRestore, r.Organization, model.Resource{Type: model.ResourceBucket, ID: r.Bucket})
	return left, s.core.Change(call, func(tx *meta.Tx) error {
		b, err := s.restoredBucket(tx, r)
		if err != nil {
			return err
		}
		call.Resource = bucketResource(b)
		return s.core.WithinPlan(tx, b.Organization, func() (err error) {
			left, err = s.restorePage(tx, call, b, plans)
			return err
		})
	})
}

// restorePage carries out the plans and notes in the restore what is done, and what is left to be copied, whose number it returns.
func (s *Service) restorePage(tx *meta.Tx, call *model.Call, b model.Bucket, plans []keyPlan) (left int, err error) {
	var counts model.BucketRestoreCount
	var copies []model.VersionCopy
	rows, now := int64(0), s.core.RetentionClock()
	for _, plan := range plans {
		copied, err := plan.apply(tx, b, now)
		if errors.Is(err, errKeyLocked) {
			plan.act, err = keySkipped, nil
		}
		if err != nil {
			return 0, err
		}
		rows += int64(plan.Rows)
		if copied.Key != "" {
			copies = append(copies, copied)
			continue // counted once it is copied
		}
		counts.Add(plan.count())
	}
	noteCounts(call, counts)
	return len(copies), tx.BucketRestores().Change(b.ID, func(r *model.BucketRestore) {
		r.After, r.Copies = plans[len(plans)-1].Key, copies
		r.RowsDone += rows
		r.Counts.Add(counts)
	})
}

// restoreVersions copies the versions of a plan that are to become the latest.
func (s *Service) restoreVersions(ctx context.Context, r model.BucketRestore) error {
	var mu sync.Mutex
	var counts model.BucketRestoreCount
	err := parallel.Do(ctx, restoreCopies, slices.Values(r.Copies), func(ctx context.Context, copies <-chan model.VersionCopy) error {
		for c := range copies {
			count, err := s.restoreVersion(ctx, r, c)
			if err != nil {
				return err
			}
			mu.Lock()
			counts.Add(count)
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.BucketRestores().Change(r.Bucket, func(r *model.BucketRestore) {
			r.Copies = nil
			r.Counts.Add(counts)
		})
	})
}

// restoreVersion copies a version, unless a client has written its key meanwhile, or this was done before a crash.
func (s *Service) restoreVersion(ctx context.Context, r model.BucketRestore, c model.VersionCopy) (count model.BucketRestoreCount, err error) {
	call := s.core.System(model.ActionObjectsRestore, r.Organization, objectResource(r.Bucket, c.Key))
	source, err := s.ObjectOpen(ctx, call, r.Bucket, c.Key, c.Version)
	if model.CodeOf(err) == model.CodeNotFound { // a client has removed it since
		return model.BucketRestoreCount{Skipped: 1}, nil
	}
	if err != nil {
		return count, err
	}
	defer source.Content.Close()
	restored := model.BucketRestoreCount{Restored: 1, Bytes: source.SizeBytes}
	call.Note("source_version", source.VersionID())
	_, err = s.store(ctx, call, Upload{
		Bucket: r.Bucket, Key: c.Key, ContentType: source.ContentType, Body: source.Content, Length: source.SizeBytes,
		MaxBytes: source.SizeBytes, SHA256: source.ChecksumSHA256, Tags: maps.Clone(source.Tags), over: &c.Latest,
		Describe: func(o *model.Object) {
			describeCopy(o, source.Object)
			o.CopyOf = source.Origin()
		},
	}, false)
	if errors.Is(err, errWritten) {
		if latest, lookupErr := s.latest(r.Bucket, c.Key); lookupErr == nil && latest.Origin() == source.Origin() {
			return restored, nil
		}
		return model.BucketRestoreCount{Skipped: 1}, nil
	}
	return restored, err
}
