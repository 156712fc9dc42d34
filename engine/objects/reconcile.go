package objects

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
)

// ReconcileBlobs removes discarded blobs and orphans (blobs without a row) after a start. With older metadata it
// quarantines orphans instead. It skips blobs written after started, because their rows may not be committed yet.
func (s *Service) ReconcileBlobs(ctx context.Context, started time.Time, older bool) {
	if err := s.core.RemoveDiscarded(); err != nil {
		s.core.Log.Error("remove discarded blobs", "error", err)
	}
	err := s.core.Blobs.Walk(func(ref blobstore.Ref, size int64, written time.Time) error {
		if ctx.Err() != nil || !written.Before(started) || s.blobKnown(ref) {
			return ctx.Err()
		}
		return s.discardBlob(ref, size, older)
	})
	if err == nil && !older {
		err = s.core.Blobs.EachListed(func(a blobstore.Away, _ bool) error {
			if ctx.Err() != nil || s.blobKnown(a.Ref) {
				return ctx.Err()
			}
			return s.core.Blobs.Remove(a.Ref)
		})
	}
	if err != nil && ctx.Err() == nil {
		s.core.Log.Error("reconcile blobs", "error", err)
	}
}

// FileTime returns the file system's current time, which lags the clock by up to a tick: only this time is comparable
// with the times of files.
func (s *Service) FileTime() (time.Time, error) {
	marker, err := os.CreateTemp(s.core.Config.DataDir, "started-")
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the file system for the time: %w", err)
	}
	defer os.Remove(marker.Name())
	defer marker.Close()
	info, err := marker.Stat()
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the file system for the time: %w", err)
	}
	return info.ModTime(), nil
}

func (s *Service) blobKnown(ref blobstore.Ref) (known bool) {
	lookup := func(tx *meta.Tx) error {
		known = tx.BlobKnown(string(ref))
		return nil
	}
	_ = s.core.Meta.View(lookup)
	if !known { // its row may be queued
		_ = s.core.Meta.ViewFlushed(lookup)
	}
	return known
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
