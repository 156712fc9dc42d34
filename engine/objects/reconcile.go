package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/internal/durable"
)

// The directories in quarantine.
const (
	quarantinedBlobs   = "blobs"
	quarantinedUploads = "uploads"
)

// ReconcileBlobs removes discarded blobs and orphans (blobs without a row) after a start. With older metadata it
// quarantines orphans instead, and while those are recent it keeps what is away. It skips blobs written since, because
// their rows may not be committed yet. It returns nil once it has seen all.
func (s *Service) ReconcileBlobs(ctx context.Context, older bool) error {
	if err := s.core.RemoveDiscarded(); err != nil {
		s.core.Log.Error("remove discarded blobs", "error", err)
	}
	if err := s.core.Blobs.Walk(func(ref blobstore.Ref, size int64, _ time.Time) error {
		if ctx.Err() != nil || s.core.Blobs.IsNew(ref) {
			return ctx.Err()
		}
		if known, err := s.blobKnown(ref); known || err != nil {
			return err
		}
		return s.discardBlob(ref, size, older)
	}); err != nil {
		return err
	}
	if older {
		return s.syncQuarantine()
	}
	if s.core.KeepsUnknown() {
		return nil
	}
	return s.core.Blobs.EachListed(func(a blobstore.Away, _ bool) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if known, err := s.blobKnown(a.Ref); known || err != nil {
			return err
		}
		return s.core.Blobs.Remove(a.Ref)
	})
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
	to, err := s.quarantine(quarantinedBlobs, string(ref))
	if err != nil {
		return err
	}
	s.core.Log.Warn("quarantining a blob that belongs to no record", "blob", ref, "bytes", size, "to", to)
	return s.core.Blobs.Quarantine(ref, to)
}

// syncQuarantine makes durable what was moved to quarantine.
func (s *Service) syncQuarantine() error {
	for _, kind := range []string{quarantinedBlobs, quarantinedUploads} {
		dir := filepath.Join(s.core.Config.DataDir, core.QuarantineDir, kind)
		if err := durable.SyncDir(durable.OS{}, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sync quarantine: %w", err)
		}
	}
	return nil
}

// quarantine returns the path in quarantine for a file of that kind.
func (s *Service) quarantine(kind, name string) (path string, err error) {
	dir := filepath.Join(s.core.Config.DataDir, core.QuarantineDir, kind)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make quarantine: %w", err)
	}
	return filepath.Join(dir, name), nil
}
