package offsite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/parallel"
)

const (
	// evictInterval is between two looks at how much large objects take.
	evictInterval = 5 * time.Second
	// unusedInterval is between two looks for objects that were not read for long.
	unusedInterval = 10 * time.Minute
	// evictBatch is how many objects leave at a time, evictTo how much of the limit they leave in use, and confirmers how many
	// copies are confirmed at a time.
	evictBatch = 1000
	evictTo    = 0.9
	confirmers = 4
	// checkpointMargin is how long before a checkpoint a file was written that is in it: times of files are coarse.
	checkpointMargin = time.Second
	// bringBackRetry is between two attempts to bring back what must not be away.
	bringBackRetry = time.Minute
)

// evict takes large objects from this disk while they take more of it than they may, until ctx ends. Those that were not
// read for longest leave first. An object leaves once
//
//   - a checkpoint of this run, before which no other machine had taken over, refers to its copy: so no prune
//     removes the copy while the object lives, and a recovery finds it;
//   - the store has the copy, whole: it confirmed the checksum when the copy was stored, or the copy is read back now;
//   - it is durably listed as away (blobstore.Store.Evict).
func (s *Service) evict(ctx context.Context, r *run) {
	var looked time.Time
	for wait(ctx, evictInterval) {
		if r.checkpointed.Load() == 0 {
			continue
		}
		unused := s.evictsUnused() > 0 && time.Since(looked) > unusedInterval
		if !unused && !looked.IsZero() && s.core.Blobs.Local() <= s.objects.LocalLimit() {
			continue
		}
		looked = time.Now()
		if err := s.evictOnce(ctx, r); err != nil && ctx.Err() == nil {
			s.core.Log.Warn("large objects stay on this disk for now", "error", err)
			if !wait(ctx, retryFetch) {
				return
			}
		}
	}
}

// evictOnce evicts batches until large objects take little enough.
func (s *Service) evictOnce(ctx context.Context, r *run) error {
	for {
		files, err := s.evictable(ctx, r)
		if err != nil || len(files) == 0 {
			return err
		}
		before := s.core.Blobs.Local()
		if err := s.evictFiles(ctx, r, files); err != nil {
			return err
		}
		if s.core.Blobs.Local() >= before { // nothing could leave
			return nil
		}
	}
}

// evictable returns the files that should leave now, at most a batch: those that were used least recently. While too few can
// leave because they are in no checkpoint yet, it asks for one.
func (s *Service) evictable(ctx context.Context, r *run) (files []blobstore.LocalFile, err error) {
	checkpointed := time.Unix(0, r.checkpointed.Load()).Add(-checkpointMargin)
	waiting := false
	if err := s.core.Blobs.WalkLocal(func(f blobstore.LocalFile) error {
		switch {
		case !s.objects.MayLeave(f.Size):
		case !s.isCopied(r, f.Ref) || f.Written.After(checkpointed):
			waiting = true
		default:
			files = append(files, f)
		}
		if len(files) >= 2*evictBatch {
			files = oldest(files)
		}
		return ctx.Err()
	}); err != nil {
		return nil, err
	}
	files = oldest(files)
	excess, limit := s.core.Blobs.Local(), s.objects.LocalLimit()
	if excess <= limit {
		excess = 0
	} else {
		excess -= int64(evictTo * float64(limit))
	}
	now := s.core.Clock() // first: what a leap of the clock in between makes look old stays
	unused := s.evictsUnused()
	n := 0
	for n < len(files) && (excess > 0 || unused > 0 && now.Sub(files[n].Used) > unused) {
		excess -= files[n].Size
		n++
	}
	if excess > 0 && waiting {
		s.wakePoints()
	}
	return files[:n], nil
}

// evictsUnused returns after how long without being read an object leaves although there is room, 0 for never: a clock that is
// implausibly ahead makes nothing old.
func (s *Service) evictsUnused() time.Duration {
	if s.core.KeepsAll() {
		return 0
	}
	return s.core.Config.LocalObjects.Unused
}

// oldest returns the files of a batch that were used least recently, in that order.
func oldest(files []blobstore.LocalFile) []blobstore.LocalFile {
	slices.SortFunc(files, func(a, b blobstore.LocalFile) int {
		return cmp.Or(a.Used.Compare(b.Used), cmp.Compare(a.Ref, b.Ref))
	})
	return files[:min(len(files), evictBatch)]
}

// isCopied reports whether a file has a copy: it is listed as away, or this run knows it.
func (s *Service) isCopied(r *run, ref blobstore.Ref) bool {
	if _, known := r.known.Get("", KindBlob, string(ref)); known {
		return true
	}
	_, err := s.core.Blobs.Listed(ref)
	return err == nil
}

// evictFiles confirms the copies of files, and evicts those that have one.
func (s *Service) evictFiles(ctx context.Context, r *run, files []blobstore.LocalFile) error {
	var mu sync.Mutex
	var away []blobstore.Away
	if err := parallel.Do(ctx, confirmers, slices.Values(files), func(ctx context.Context, files <-chan blobstore.LocalFile) error {
		for f := range files {
			a, err := s.confirm(ctx, r, f)
			if err != nil {
				return err
			}
			if a == nil {
				continue
			}
			mu.Lock()
			away = append(away, *a)
			mu.Unlock()
		}
		return nil
	}); err != nil {
		return err
	}
	if r.writer.Err() != nil || s.core.ReadOnly() != nil { // another machine has taken over
		return nil
	}
	s.core.RemovalLock.RLock()
	defer s.core.RemovalLock.RUnlock()
	if err := s.dropDiscarded(&away); err != nil {
		return err
	}
	return s.core.Blobs.Evict(away)
}

// dropDiscarded leaves out the blobs that no record refers to: those are removed.
func (s *Service) dropDiscarded(away *[]blobstore.Away) error {
	return s.core.Meta.View(func(tx *meta.Tx) error {
		*away = slices.DeleteFunc(*away, func(a blobstore.Away) bool { return !tx.BlobKnown(string(a.Ref)) })
		return nil
	})
}

// confirm returns where the copy of a file is, once the store is known to have it whole; nil if the file must stay. A copy
// that is damaged or missing is made again.
func (s *Service) confirm(ctx context.Context, r *run, f blobstore.LocalFile) (*blobstore.Away, error) {
	a, err := s.core.Blobs.Listed(f.Ref)
	if errors.Is(err, blobstore.ErrNotFound) {
		copied, known := r.known.Get("", KindBlob, string(f.Ref))
		if !known {
			return nil, nil //nolint:nilnil // it was removed
		}
		a = awayOf(r.known.repository, string(f.Ref), copied)
		err = s.confirmCopy(ctx, r, f, copied, r.readBack)
	} else if err == nil { // it was read back when it left for the first time
		var copied stream.Reference
		if copied, err = locate(r.known.repository, a); err == nil {
			err = s.confirmCopy(ctx, r, f, copied, false)
		}
	}
	if err == nil {
		return &a, nil
	}
	if err = damageOf(ctx, r.connection, err); !errors.Is(err, blobstore.ErrDamaged) {
		return nil, err
	}
	s.core.Log.Error("the copy of a large object off-site is damaged or missing, and is made again", "blob", f.Ref, "error", err)
	r.known.Drop("", KindBlob, string(f.Ref))
	s.wakePoints()
	return nil, s.core.Blobs.Unlist(f.Ref) // it stays here, unless it has left or is damaged here too
}

func (s *Service) confirmCopy(ctx context.Context, r *run, f blobstore.LocalFile, copied stream.Reference, readBack bool) error {
	if copied.Size != f.Size {
		return fmt.Errorf("%w: it has %d bytes, not %d", stream.ErrCorrupt, copied.Size, f.Size)
	}
	return r.connection.repository.Confirm(ctx, copied, readBack)
}

// bringObjectsBack fetches what must not be away: everything once objects may not leave this disk any more.
func (s *Service) bringObjectsBack(ctx context.Context) {
	if s.recovery != nil && s.recovery.isPending() {
		return // the recovery does it
	}
	for said := false; ; {
		_, err := fetchBodies(ctx, s.core, s.objects.MayLeave)
		if err == nil || errors.Is(err, context.Canceled) {
			return
		}
		if !said {
			said = true
			s.core.Log.Warn("large objects that should be on this disk stay away for now", "error", err)
		}
		if !wait(ctx, bringBackRetry) {
			return
		}
	}
}
