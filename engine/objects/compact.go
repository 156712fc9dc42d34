package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// compactInterval is the time between searches for segments to compact.
	compactInterval = time.Minute
	// compactBelow is the live share below which a segment is compacted.
	compactBelow = 0.5
	// compactRate limits copying, in bytes per second, so that it does not slow clients down.
	compactRate = 32 << 20
	// compactBatch is the number of bytes copied per sync.
	compactBatch = 1 << 20
)

// Compact reclaims the space of deleted and replaced small objects until ctx
// ends. It copies the live blobs of a segment to the end of the journal and
// removes the segment.
func (s *Service) Compact(ctx context.Context) {
	ticker := time.NewTicker(compactInterval)
	defer ticker.Stop()
	for {
		if err := s.compactOnce(ctx); err != nil && ctx.Err() == nil {
			s.core.Log.Error("compact the journal", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// compactOnce compacts the segments whose notes are all in the metadata, so that no replay needs them. It keeps damaged
// segments as evidence, and all while the metadata may not know what is in them.
func (s *Service) compactOnce(ctx context.Context) error {
	if s.core.KeepsUnknown() {
		return nil
	}
	var errs []error
	applied := blobstore.Position(s.core.Meta.Applied())
	kept := map[uint32]bool{}
	if err := s.core.Meta.View(func(tx *meta.Tx) error {
		for _, d := range JournalDamages(tx, s.core.Clock()) {
			kept[d.Position.Segment()] = true
		}
		return nil
	}); err != nil {
		return err
	}
	for _, segment := range s.core.Blobs.Segments() {
		if segment < applied.Segment() && !kept[segment] {
			errs = append(errs, s.compactSegment(ctx, segment))
		}
	}
	return errors.Join(errs...)
}

func (s *Service) compactSegment(ctx context.Context, segment uint32) error {
	use, err := segmentUse(s.core.Meta.View, segment)
	if err != nil || use.Objects > 0 && use.Live() >= compactBelow {
		return err
	}
	if use.Objects > 0 {
		if err := s.copySegment(ctx, segment); err != nil {
			return fmt.Errorf("copy segment %d: %w", segment, err)
		}
		if use, err = segmentUse(s.core.Meta.ViewFlushed, segment); err != nil {
			return err
		}
	}
	if use.Objects > 0 { // blobs that could not be read and were not moved
		return nil
	}
	if wrong, err := s.recountSegment(segment); wrong || err != nil {
		return err
	}
	if needed, err := s.neededByRecovery(segment); needed || err != nil {
		return err
	}
	if err := s.core.Meta.Durable(); err != nil {
		return err
	}
	s.core.RemovalLock.RLock()
	defer s.core.RemovalLock.RUnlock()
	return s.core.Blobs.DropSegment(segment)
}

// segmentUse reads how much of a segment is live, with View or ViewFlushed.
func segmentUse(view func(func(*meta.Tx) error) error, segment uint32) (use meta.SegmentUse, err error) {
	err = view(func(tx *meta.Tx) error {
		use = tx.SegmentUse(segment)
		return nil
	})
	return use, err
}

// copySegment copies the live blobs of a segment to the end of the journal.
func (s *Service) copySegment(ctx context.Context, segment uint32) error {
	limit := rate.NewLimiter(compactRate, 2*compactBatch)
	var copies []blobstore.Copy
	size := 0
	flush := func() error {
		if len(copies) == 0 {
			return nil
		}
		if err := limit.WaitN(ctx, min(size, limit.Burst())); err != nil {
			return err
		}
		err := s.core.Blobs.Copy(ctx, copies)
		copies, size = nil, 0
		return err
	}
	err := s.core.Blobs.ReadSegment(segment, func(entry blobstore.Entry, blob []byte) error {
		note, err := s.moved(entry)
		if err != nil || note == nil {
			return err
		}
		copies = append(copies, blobstore.Copy{Note: note, Blob: blob})
		if size += len(note) + len(blob); size < compactBatch {
			return nil
		}
		return flush()
	})
	if errors.Is(err, blobstore.ErrDamaged) {
		s.core.Log.Error("a segment of the journal is damaged, and kept", "segment", segment, "error", err)
		err = nil
	}
	return errors.Join(err, flush())
}

// noteOfBlob returns the note that came with the entry's blob, false if it has none.
func noteOfBlob(entry blobstore.Entry) (note objectNote, ok bool) {
	ok = entry.Ref != "" && json.Unmarshal(entry.Note, &note) == nil
	return note, ok
}

// moved returns the note to copy the entry's blob with, nil if no object uses the blob any more.
func (s *Service) moved(entry blobstore.Entry) ([]byte, error) {
	note, ok := noteOfBlob(entry)
	if !ok {
		return nil, nil
	}
	object, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Object, error) { return objectWith(tx, note, entry.Ref) })
	if errors.Is(err, meta.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return (&objectNote{Act: actMove, Object: object, From: object.Blob}).encode()
}

// objectWith returns the object of a note, or ErrNotFound if it does not use the blob that came with the note any more.
func objectWith(tx *meta.Tx, note objectNote, blob blobstore.Ref) (model.Object, error) {
	object, err := tx.ObjectOfVersion(note.Object.Bucket, note.Object.Key, note.Object.Version)
	if err == nil && object.Blob != string(blob) {
		err = meta.ErrNotFound
	}
	return object, err
}

// neededByRecovery reports whether a segment without live blobs has one that a recovery from the off-site copy would bring
// back, because the copy has no bytes of the object that replaced it yet.
func (s *Service) neededByRecovery(segment uint32) (needed bool, err error) {
	if s.copied == nil {
		return false, nil
	}
	found := errors.New("found") // ends the reading
	err = s.core.Blobs.ReadSegment(segment, func(entry blobstore.Entry, _ []byte) error {
		note, ok := noteOfBlob(entry)
		if !ok {
			return nil
		}
		newer, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Object, error) {
			return tx.ObjectVersion(note.Object.Bucket, note.Object.Key, model.NullVersion)
		})
		if errors.Is(err, meta.ErrNotFound) {
			return nil
		}
		if err == nil && s.bringsBack(newer, entry.Ref) {
			err = found
		}
		return err
	})
	switch {
	case errors.Is(err, found):
		return true, nil
	case errors.Is(err, blobstore.ErrDamaged): // what follows cannot be read by a recovery either
		return false, nil
	}
	return false, err
}

// bringsBack reports whether a recovery that lacks the bytes of an object may bring back those of ref.
func (s *Service) bringsBack(o model.Object, ref blobstore.Ref) bool {
	for !s.inCopy(o) && o.Replaced != nil {
		if o = *o.Replaced; o.Blob == string(ref) {
			return true
		}
	}
	return false
}
