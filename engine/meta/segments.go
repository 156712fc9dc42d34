package meta

import (
	"encoding/binary"
	"fmt"

	"holdfast/engine/model"
)

// segmentsBucket counts, for each journal segment, the objects whose bytes it
// contains: the four numbers of SegmentUse, 8 bytes each.
const segmentsBucket = "segments"

// SegmentUse counts what objects need of a segment, and what they ever needed.
type SegmentUse struct{ Objects, Bytes, EverObjects, EverBytes int64 }

// recordOverhead is the approximate size of a journal record without the object's bytes.
const recordOverhead = 600

// Live returns the approximate fraction of the segment that is needed.
func (u SegmentUse) Live() float64 {
	return float64(u.Bytes+recordOverhead*u.Objects) / float64(max(1, u.EverBytes+recordOverhead*u.EverObjects))
}

// SegmentUse returns the use of a segment.
func (tx *Tx) SegmentUse(segment uint32) (use SegmentUse) {
	if tx.batch != nil {
		if use, known := tx.batch.segments[segment]; known {
			return use
		}
	}
	value := tx.bolt.Bucket([]byte(segmentsBucket)).Get(segmentKey(segment))
	if len(value) != 32 {
		return use
	}
	for i, n := range []*int64{&use.Objects, &use.Bytes, &use.EverObjects, &use.EverBytes} {
		*n = int64(binary.BigEndian.Uint64(value[8*i:]))
	}
	return use
}

func segmentKey(segment uint32) []byte { return binary.BigEndian.AppendUint32(nil, segment) }

func (tx *Tx) countSegment(object model.Object, by int64) error {
	use := tx.SegmentUse(object.Segment)
	use.Objects += by
	use.Bytes += by * object.SizeBytes
	if by > 0 {
		use.EverObjects += by
		use.EverBytes += by * object.SizeBytes
	}
	return tx.CorrectSegmentUse(object.Segment, use)
}

// CorrectSegmentUse replaces the use of a segment.
func (tx *Tx) CorrectSegmentUse(segment uint32, use SegmentUse) error {
	if tx.batch != nil {
		tx.batch.segments[segment] = use
		return nil
	}
	return tx.putSegmentUse(segment, use)
}

func (tx *Tx) putSegmentUse(segment uint32, use SegmentUse) (err error) {
	b, key := tx.bolt.Bucket([]byte(segmentsBucket)), segmentKey(segment)
	if use.Objects == 0 {
		err = b.Delete(key)
	} else {
		var value []byte
		for _, n := range []int64{use.Objects, use.Bytes, use.EverObjects, use.EverBytes} {
			value = binary.BigEndian.AppendUint64(value, uint64(n))
		}
		err = b.Put(key, value)
	}
	if err != nil {
		return fmt.Errorf("count segment: %w", err)
	}
	return nil
}

// claimBytes records that a record of this transaction refers to the object's
// bytes; releaseBytes records that it no longer does. A delete marker has none.
func (tx *Tx) claimBytes(object model.Object) error {
	switch {
	case object.DeleteMarker:
		return nil
	case object.Segment != 0:
		return tx.countSegment(object, 1)
	}
	return tx.ClaimBlob(object.Blob)
}

func (tx *Tx) releaseBytes(object model.Object) error {
	switch {
	case object.DeleteMarker:
		return nil
	case object.Segment != 0:
		return tx.countSegment(object, -1)
	}
	return tx.DiscardBlob(object.Blob)
}
