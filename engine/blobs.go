package engine

import (
	"context"
	"fmt"
	"os"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
)

// discardBatch is how many blobs are unlinked before their rows go.
const discardBatch = 1000

// removeDiscarded unlinks the blobs that no record points to any more.
func (e *Engine) removeDiscarded() error {
	for {
		var refs []string
		var more bool
		if err := e.meta.View(func(tx *meta.Tx) error {
			refs = tx.DiscardedBlobs(discardBatch)
			more = len(refs) > 0 || tx.Dropping()
			return nil
		}); err != nil || !more {
			return err
		}
		if err := e.removeBlobs(refs); err != nil {
			return err
		}
	}
}

func (e *Engine) removeBlobs(refs []string) error {
	blobs := make([]blobstore.Ref, len(refs))
	for i, ref := range refs {
		blobs[i] = blobstore.Ref(ref)
	}
	e.keep.RLock()
	err := e.blobs.Remove(blobs...)
	e.keep.RUnlock()
	if err != nil {
		return fmt.Errorf("remove blobs: %w", err)
	}
	return e.meta.Update(func(tx *meta.Tx) error { return tx.ForgetBlobs(refs) })
}

// reconcileBlobs brings files and records in step after a start: discarded
// blobs and blobs without a row are unlinked, those without a row in older
// metadata put aside. What was written since started is left alone, its row may
// be on its way.
func (e *Engine) reconcileBlobs(ctx context.Context, started time.Time, older bool) {
	if err := e.removeDiscarded(); err != nil {
		e.log.Error("remove discarded blobs", "error", err)
	}
	err := e.blobs.Walk(func(ref blobstore.Ref, size int64, written time.Time) error {
		if ctx.Err() != nil || !written.Before(started) || e.blobKnown(ref) {
			return ctx.Err()
		}
		return e.discardBlob(ref, size, older)
	})
	if err != nil && ctx.Err() == nil {
		e.log.Error("reconcile blobs", "error", err)
	}
}

// fileTime returns now as the file system tells it, whose clock lags behind
// by a tick: only such a time can be compared with those of files.
func (e *Engine) fileTime() (time.Time, error) {
	marker, err := os.CreateTemp(e.cfg.DataDir, "started-")
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

func (e *Engine) blobKnown(ref blobstore.Ref) (known bool) {
	lookup := func(tx *meta.Tx) error {
		known = tx.BlobKnown(string(ref))
		return nil
	}
	_ = e.meta.View(lookup)
	if !known { // unless its row is deferred
		_ = e.meta.ViewFlushed(lookup)
	}
	return known
}
