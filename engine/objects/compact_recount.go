package objects

import (
	"errors"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// recountSegment is called for a segment of which no object needs anything, as its row says, before the segment is dropped. The row
// has no checksum, so recountSegment looks up the objects of the segment's notes. If one of them has its bytes there, the
// row is wrong: recountSegment corrects it, reports that, and returns true.
func (s *Service) recountSegment(segment uint32) (wrong bool, err error) {
	found := errors.New("found") // ends the reading
	err = s.eachNote(segment, func(note objectNote, blob blobstore.Ref) error {
		err := s.core.Meta.View(func(tx *meta.Tx) error {
			_, err := objectWith(tx, note, blob)
			return err
		})
		if errors.Is(err, meta.ErrNotFound) {
			return nil
		}
		if err == nil || isDamagedRecord(err) {
			err = found
		}
		return err
	})
	if errors.Is(err, found) {
		return true, s.correctSegment(segment)
	}
	return false, err
}

// eachNote calls fn for the notes of a segment that came with a blob. It passes over those that are damaged.
func (s *Service) eachNote(segment uint32, fn func(note objectNote, blob blobstore.Ref) error) error {
	err := s.core.Blobs.ReadSegment(segment, func(entry blobstore.Entry, _ []byte) error {
		if note, ok := noteOfBlob(entry); ok {
			return fn(note, entry.Ref)
		}
		return nil
	})
	if errors.Is(err, blobstore.ErrDamaged) {
		return nil
	}
	return err
}

// correctSegment counts what objects need of a segment, and reports that its row was wrong.
func (s *Service) correctSegment(segment uint32) error {
	type source struct {
		note objectNote
		blob blobstore.Ref
	}
	var all []source
	if err := s.eachNote(segment, func(note objectNote, blob blobstore.Ref) error {
		all = append(all, source{note, blob})
		return nil
	}); err != nil {
		return err
	}
	var use meta.SegmentUse
	var first model.Object
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		use, first = meta.SegmentUse{}, model.Object{}
		for _, n := range all {
			use.EverObjects++
			use.EverBytes += n.note.Object.SizeBytes
			if object, err := objectWith(tx, n.note, n.blob); err == nil {
				use.Objects++
				use.Bytes += object.SizeBytes
				first = object
			}
		}
		return tx.CorrectSegmentUse(segment, use)
	})
	if err != nil || use.Objects == 0 { // its objects have been removed meanwhile, or their records are damaged
		return err
	}
	s.reportMiscount(segment, use, first)
	return nil
}

// reportMiscount reports in the log, and in the audit log of the organization of one of the objects, that the count of a segment was wrong.
func (s *Service) reportMiscount(segment uint32, use meta.SegmentUse, object model.Object) {
	s.core.Log.Error("a segment of the journal was counted as unused, although objects have their bytes in it: the count is corrected; have the operator check the disk",
		"segment", segment, "objects", use.Objects, "bucket", object.Bucket, "key", object.Key, "version", object.Version)
	b, _ := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Bucket, error) { return tx.Buckets().Get(object.Bucket) })
	call := s.core.System(model.ActionObjectDamaged, b.Organization, objectResource(object.Bucket, object.Key))
	call.Note("kept", "the metadata counted the segment of the journal that has its bytes as unused")
	s.core.Finish(call, nil)
}
