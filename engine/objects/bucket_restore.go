package objects

import (
	"context"
	"errors"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BucketHistory says to which moments a bucket can be brought back.
type BucketHistory struct {
	Bucket string
	// Since is the earliest moment, nil if nothing that is replaced is kept.
	Since *time.Time
	// Restore is the newest restore, nil if there was none.
	Restore *model.BucketRestore
}

// BucketHistory returns to which moments a bucket can be brought back, and its newest restore.
func (s *Service) BucketHistory(call *model.Call, id string) (BucketHistory, error) {
	if _, err := s.bucket(call, id); err != nil {
		return BucketHistory{}, err
	}
	history := BucketHistory{Bucket: id}
	err := s.core.Meta.ViewFlushed(func(tx *meta.Tx) error {
		b, err := bucketOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		if s.keepsHistory(b) {
			history.Since = &b.HistorySince
		}
		r, err := tx.BucketRestores().Get(id)
		if errors.Is(err, meta.ErrNotFound) {
			return nil
		}
		history.Restore = &r
		return err
	})
	return history, err
}

// keepsHistory reports whether what is replaced in a bucket is kept, in the trash or as versions.
func (s *Service) keepsHistory(b model.Bucket) bool {
	return s.keepsRemoved() || b.Versioning == model.VersioningEnabled
}

// planTime bounds how long a plan takes, because a request waits for it.
const planTime = 10 * time.Second

// BucketRestorePlan returns what a restore of a bucket to a moment would do. It changes nothing. The plan is partial if there
// are more keys than it can look at within planTime.
func (s *Service) BucketRestorePlan(ctx context.Context, call *model.Call, id string, target time.Time) (model.BucketRestore, error) {
	b, err := s.restorable(call, id, target)
	if err != nil {
		return model.BucketRestore{}, err
	}
	return s.planRestore(ctx, b, target, time.Now().Add(planTime))
}

// planRestore is BucketRestorePlan up to a time, but at least for the first keys.
func (s *Service) planRestore(ctx context.Context, b model.Bucket, target, until time.Time) (model.BucketRestore, error) {
	r := s.newRestore(b, target)
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		var states []meta.KeyState
		if err := s.core.Meta.ViewFlushed(func(tx *meta.Tx) (err error) {
			states, more, err = tx.KeyStates(b.ID, r.After, target, restorePage)
			return err
		}); err != nil {
			return r, err
		}
		for _, state := range states {
			r.Counts.Add(s.decide(b, r, state).count())
			r.After = state.Key
		}
		if r.Partial = more && time.Now().After(until); r.Partial {
			break
		}
	}
	return r, nil
}

// restorable returns a bucket that can be brought back to a moment.
func (s *Service) restorable(call *model.Call, id string, target time.Time) (model.Bucket, error) {
	if _, err := s.bucket(call, id); err != nil {
		return model.Bucket{}, err
	}
	b, err := s.BucketGet(call, id)
	if err != nil {
		return b, err
	}
	if target.After(s.core.RetentionClock()) {
		return b, model.Invalid("target_time", "must not be in the future")
	}
	return b, s.refuseTarget(b, target)
}

// refuseTarget refuses a past moment whose objects are not all there.
func (s *Service) refuseTarget(b model.Bucket, target time.Time) error {
	switch {
	case !s.keepsHistory(b):
		return bucketState("what is replaced or deleted in this bucket is not kept: the operator can start the appliance with --object-trash-retention, or you turn on the bucket's versioning; from then on it can be brought back")
	case target.Before(b.CreatedAt):
		return model.Invalid("target_time", "must not be before %s, when the bucket was made", b.CreatedAt.UTC().Format(time.RFC3339Nano))
	case target.Before(b.HistorySince):
		return model.Invalid("target_time", "must not be before %s: what the bucket held earlier was in part removed for good", b.HistorySince.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

func (s *Service) newRestore(b model.Bucket, target time.Time) model.BucketRestore {
	return model.BucketRestore{
		Bucket: b.ID, Organization: b.Organization, Target: target, Status: model.BucketRestoreRunning, StartedAt: s.core.RetentionClock(), Rows: b.ObjectCount,
	}
}

// BucketRestore begins to bring the objects of a bucket back to a moment.
func (s *Service) BucketRestore(call *model.Call, id string, target time.Time) (model.BucketRestore, error) {
	if err := core.Permit(call, model.OperationFor(model.ActionBucketRestore).Sometimes()); err != nil {
		return model.BucketRestore{}, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.BucketRestore{}, err
	}
	if _, err := s.restorable(call, id, target); err != nil {
		return model.BucketRestore{}, err
	}
	call.Note("target_time", target.UTC().Format(time.RFC3339Nano))
	defer s.locks.bucket(id)() // so that everything written before StartedAt is known
	if err := s.core.Meta.Flush(); err != nil {
		return model.BucketRestore{}, err
	}
	var r model.BucketRestore
	err := s.core.Change(call, func(tx *meta.Tx) error {
		b, err := bucketOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		if err := s.refuseTarget(b, target); err != nil {
			return err
		}
		r = s.newRestore(b, target)
		r.Rows += tx.TrashedRows(id)
		return beginRestore(tx, r)
	})
	if err == nil {
		s.core.Background(func(ctx context.Context) { s.runRestore(ctx, id) })
	}
	return r, err
}

// beginRestore stores a plan in place of that of an earlier restore.
func beginRestore(tx *meta.Tx, r model.BucketRestore) error {
	switch old, err := tx.BucketRestores().Get(r.Bucket); {
	case errors.Is(err, meta.ErrNotFound):
		return tx.BucketRestores().Insert(r)
	case err != nil:
		return err
	case old.Status == model.BucketRestoreRunning:
		return model.Errorf(model.CodeConflict, "the bucket is being brought back to %s already", old.Target.UTC().Format(time.RFC3339Nano))
	}
	return tx.BucketRestores().Change(r.Bucket, func(old *model.BucketRestore) { *old = r })
}

// ResumeRestores continues the restores that were running when the appliance stopped.
func (s *Service) ResumeRestores() error {
	running, err := meta.Value(s.core.Meta.View, runningRestores)
	for _, r := range running {
		s.core.Background(func(ctx context.Context) { s.runRestore(ctx, r.Bucket) })
	}
	return err
}

func runningRestores(tx *meta.Tx) ([]model.BucketRestore, error) {
	return tx.BucketRestores().Where(func(r model.BucketRestore) bool { return r.Status == model.BucketRestoreRunning })
}

// BeginHistory gives buckets that were made by an older program a history, which begins now.
func (s *Service) BeginHistory() error {
	unknown := func(b model.Bucket) bool { return b.HistorySince.IsZero() }
	old, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Bucket, error) { return tx.Buckets().Where(unknown) })
	if err != nil || len(old) == 0 {
		return err
	}
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Buckets().ChangeWhere(unknown, func(b *model.Bucket) { b.HistorySince = s.core.RetentionClock() })
	})
}
