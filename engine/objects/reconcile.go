package objects

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
)

// ReconcileBlobs removes discarded blobs and orphans (blobs without a row) after a start. With older metadata it
// quarantines orphans instead. It skips blobs written since, because their rows may not be committed yet.
func (s *Service) ReconcileBlobs(ctx context.Context, older bool) {
	if err := s.core.RemoveDiscarded(); err != nil {
		s.core.Log.Error("remove discarded blobs", "error", err)
	}
	err := s.core.Blobs.Walk(func(ref blobstore.Ref, size int64, _ time.Time) error {
		if ctx.Err() != nil || s.core.Blobs.IsNew(ref) {
			return ctx.Err()
		}
		if known, err := s.blobKnown(ref); known || err != nil {
			return err
		}
		return s.discardBlob(ref, size, older)
	})
	if err == nil && !older {
		err = s.core.Blobs.EachListed(func(a blobstore.Away, _ bool) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if known, err := s.blobKnown(a.Ref); known || err != nil {
				return err
			}
			return s.core.Blobs.Remove(a.Ref)
		})
	}
	if err != nil && ctx.Err() == nil {
		s.core.Log.Error("reconcile blobs", "error", err)
	}
}

// blobKnown reports whether a blob has a row. Without one it may be removed, so it is asked for in what is durable, and an
// error is no answer.
func (s *Service) blobKnown(ref blobstore.Ref) (known bool, err error) {
	lookup := func(tx *meta.Tx) error {
		known = tx.BlobKnown(string(ref))
		return nil
	}
	if err = s.core.Meta.View(lookup); err == nil && !known { // its row may be queued
		err = s.core.Meta.ViewFlushed(lookup)
	}
	if err == nil && !known {
		err = s.core.Meta.Durable()
	}
	return known, err
}

// discardBlob removes an orphan; with older metadata it quarantines it.
func (s *Service) discardBlob(ref blobstore.Ref, size int64, older bool) error {
	if !older {
		s.core.Log.Warn("removing a blob that belongs to no record", "blob", ref, "bytes", size)
		return s.core.Blobs.Remove(ref)
	}
	dir := filepath.Join(s.core.Config.DataDir, core.QuarantineDir, "blobs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	to := filepath.Join(dir, string(ref))
	s.core.Log.Warn("quarantining a blob that belongs to no record", "blob", ref, "bytes", size, "to", to)
	return s.core.Blobs.Quarantine(ref, to)
}
