package api

import (
	"context"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

func newBucketRestore(r model.BucketRestore) wire.BucketRestore {
	view := wire.BucketRestore{
		BucketID: r.Bucket, TargetTime: utc(r.Target), Status: wire.BucketRestoreStatus(r.Status), ProgressPercent: r.Percent(),
		RestoredObjects: r.Counts.Restored, RestoredBytes: r.Counts.Bytes, RemovedObjects: r.Counts.Removed,
		UnchangedObjects: r.Counts.Unchanged, SkippedObjects: r.Counts.Skipped,
		Partial:   r.Partial,
		StartedAt: utcOrAbsent(&r.StartedAt), CompletedAt: utcOrAbsent(&r.CompletedAt), Error: orAbsent(r.Error),
	}
	return view
}

func (h *handlers) bucketHistory(_ context.Context, call *model.Call, in *BucketInput) (wire.BucketHistory, error) {
	history, err := h.engine.Objects.BucketHistory(call, in.ID)
	view := wire.BucketHistory{BucketID: in.ID, EarliestRestorableTime: utcOrAbsent(history.Since)}
	if history.Restore != nil {
		view.Restore = new(newBucketRestore(*history.Restore))
	}
	return view, err
}

type restoreBucketInput struct {
	BucketInput
	Body wire.RestoreBucket
}

func (h *handlers) bucketRestore(ctx context.Context, call *model.Call, in *restoreBucketInput) (wire.BucketRestore, error) {
	if in.Body.DryRun == nil || !*in.Body.DryRun {
		r, err := h.engine.Objects.BucketRestore(call, in.ID, in.Body.TargetTime)
		return newBucketRestore(r), err
	}
	r, err := h.engine.Objects.BucketRestorePlan(ctx, call, in.ID, in.Body.TargetTime)
	view := newBucketRestore(r)
	view.DryRun, view.Status, view.ProgressPercent, view.StartedAt = true, wire.BucketRestorePlanned, 0, nil
	return view, err
}
