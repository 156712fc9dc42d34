package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/internal/objectstore"
)

// watch looks for later epochs until the Writer ends.
func (w *Writer) watch() {
	ticker := time.NewTicker(w.options.CheckEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-w.ctx.Done():
			return
		}
		if err := w.check(w.ctx); err != nil && w.Err() == nil {
			w.note("look for another machine", err)
		}
	}
}

// check ends the Writer when a valid claim supersedes its own, or one that it cannot open.
func (w *Writer) check(ctx context.Context) error {
	w.checking.Lock()
	defer w.checking.Unlock()
	own := w.claim.Epoch
	// "=" is after everything that follows the number before.
	after := epochsPrefix + Epoch{Number: own.Number - 1}.String() + "="
	for info, err := range w.repo.store.List(ctx, epochsPrefix, after) {
		if err != nil {
			return fmt.Errorf("list the epochs: %w", err)
		}
		e, ok := parseEpoch(info.Key[len(epochsPrefix):])
		if !ok || !e.supersedes(own) || w.junk[info.Key] {
			continue
		}
		c, err := w.repo.readClaim(ctx, e)
		if err == nil {
			w.fence(fmt.Errorf("%q claimed epoch %s at %s", c.Machine, e, c.Time.UTC().Format(time.RFC3339)))
			return w.Err()
		}
		if isJunk(err) {
			w.noteJunk(info.Key, err)
			continue
		}
		if Damaged(err) && !errors.Is(err, objectstore.ErrNotFound) { // the next Writer may have the key
			w.cancel(err)
		}
		return err
	}
	return nil
}

// noteJunk notes an object below "epoch/" that is not a claim. w.checking is held.
func (w *Writer) noteJunk(key string, err error) {
	w.options.Log.Error("somebody put an object into the store that is not of this copy; it is passed over", "object", key, "error", err)
	w.junk[key] = true
	w.mu.Lock()
	defer w.mu.Unlock()
	w.foreign = append(slices.Clip(w.foreign), key)
}
