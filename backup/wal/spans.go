package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"holdfast/backup/wal/xlog"
)

// ErrGap means that archived WAL is missing or damaged.
var ErrGap = errors.New("the archived WAL is not complete")

// GapError names the segment that is missing or damaged.
type GapError struct {
	Generation int
	Segment    string // its PostgreSQL name
	Err        error
}

func (e *GapError) Error() string {
	return fmt.Sprintf("%v: segment %s of generation %d: %v", ErrGap, e.Segment, e.Generation, e.Err)
}

// Unwrap returns ErrGap and the cause.
func (e *GapError) Unwrap() []error { return []error{ErrGap, e.Err} }

// span is the part of a timeline of a generation that belongs to a history, from the start of the timeline to the
// next fork.
type span struct {
	branch   *branch
	timeline uint32
	from, to xlog.LSN
}

// spans returns the history of a timeline of a generation, 0 for its latest, oldest span first; the spans end at the
// forks. It acquires a.mu.
func (a *Archive) spans(number int, timeline uint32) ([]span, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.branch(number)
	if err != nil {
		return nil, err
	}
	if timeline == 0 {
		timeline = b.latestTimeline()
	}
	to := ^xlog.LSN(0)
	var all []span
	for {
		parent, parentTimeline, fork, err := a.forkOf(b, timeline)
		if err != nil {
			return nil, err
		}
		all = append(all, span{b, timeline, fork, to})
		if parent == nil {
			slices.Reverse(all)
			return all, nil
		}
		b, timeline, to = parent, parentTimeline, fork
	}
}

// forkOf returns the fork of a timeline of b. The branch is nil if the parent is not in this archive or is damaged,
// which does not affect b's own WAL.
func (a *Archive) forkOf(b *branch, timeline uint32) (parent *branch, parentTimeline uint32, at xlog.LSN, err error) {
	if h := b.histories[timeline]; len(h) > 0 && timeline != b.info().Timeline {
		last := h[len(h)-1]
		if last.Timeline >= b.info().Timeline {
			return b, last.Timeline, last.At, nil
		}
	}
	p := b.info().Parent
	if p == nil || a.damaged[p.Generation] != nil {
		return nil, 0, 0, nil
	}
	if parent, err = a.branch(p.Generation); err != nil {
		return nil, 0, 0, err
	}
	return parent, p.Timeline, p.Fork, nil
}

// history returns a timeline's history file.
func (a *Archive) history(b *branch, timeline uint32) (xlog.History, error) {
	a.mu.Lock()
	h, known := b.histories[timeline]
	a.mu.Unlock()
	if timeline > 1 && !known {
		return nil, fmt.Errorf("the WAL archive lacks %s of generation %d", xlog.HistoryName(timeline), b.number)
	}
	return h, nil
}

// historyOf returns the history of the last timeline of spans.
func (a *Archive) historyOf(spans []span) xlog.History {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := spans[len(spans)-1]
	if h, known := last.branch.histories[last.timeline]; known {
		return h // includes the ancestors before this archive
	}
	h := slices.Clone(spans[0].branch.histories[spans[0].timeline])
	for _, s := range spans[:len(spans)-1] {
		h = append(h, xlog.Fork{Timeline: s.timeline, At: s.to})
	}
	return h
}

// pick returns the segment from which to read segment number n up to need. Like PostgreSQL, it prefers the newest
// timeline, because the segment in which a timeline begins repeats the WAL before the fork.
func (a *Archive) pick(spans []span, n uint64, need xlog.LSN) (*branch, *segment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range slices.Backward(spans) {
		if s.branch.info().SegmentSize == 0 || uint64(s.from)/s.branch.info().SegmentSize > n {
			continue
		}
		found := s.branch.segments[segmentKey{s.timeline, n}]
		if found != nil && found.end >= need && need <= s.to {
			copied := *found
			return s.branch, &copied
		}
	}
	return nil, nil
}

// longest returns the segment from which most of segment number n can be read, cut off at the end of its span, or nil.
// Of equals, it prefers the newest timeline.
func (a *Archive) longest(spans []span, n uint64) (b *branch, longest *segment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var end xlog.LSN
	for _, s := range slices.Backward(spans) {
		size := s.branch.info().SegmentSize
		if size == 0 || uint64(s.from)/size > n {
			continue
		}
		found := s.branch.segments[segmentKey{s.timeline, n}]
		if found == nil || min(found.end, s.to) <= max(end, xlog.LSN(n*size)) {
			continue
		}
		end = min(found.end, s.to)
		copied := *found
		copied.end = end
		b, longest = s.branch, &copied
	}
	return b, longest
}

// gapError returns the error for segment number n of spans.
func gapError(spans []span, n uint64, err error) error {
	s := spanOf(spans, n)
	return &GapError{Generation: s.branch.number, Segment: s.branch.name(segmentKey{s.timeline, n}), Err: err}
}

// spanOf returns the span whose timeline has segment number n.
func spanOf(spans []span, n uint64) span {
	for _, s := range slices.Backward(spans) {
		if size := s.branch.info().SegmentSize; size > 0 && uint64(s.from)/size <= n {
			return s
		}
	}
	return spans[len(spans)-1]
}

var errMissing = errors.New("it is missing, or ends too early")

// stream calls each with the WAL between two positions in pieces.
func (a *Archive) stream(spans []span, from, to xlog.LSN, each func(at xlog.LSN, piece []byte) error) error {
	size := segmentSizeOf(spans)
	if size == 0 || from >= to {
		return nil
	}
	for n := uint64(from) / size; n <= uint64(to-1)/size; n++ {
		begin, end := max(from, xlog.LSN(n*size)), min(to, xlog.LSN((n+1)*size))
		b, s := a.pick(spans, n, end)
		if s == nil {
			return gapError(spans, n, errMissing)
		}
		if err := a.streamSegment(b, s, begin, end, each); err != nil {
			if errors.Is(err, errDamaged) || errors.As(err, new(*xlog.PageError)) {
				return &GapError{Generation: b.number, Segment: b.name(s.segmentKey), Err: err}
			}
			return err
		}
	}
	return nil
}

func segmentSizeOf(spans []span) uint64 {
	for _, s := range spans {
		if s.branch.info().SegmentSize > 0 {
			return s.branch.info().SegmentSize
		}
	}
	return 0
}

// streamSegment calls each with the part of a segment between two positions.
func (a *Archive) streamSegment(b *branch, s *segment, from, to xlog.LSN, each func(xlog.LSN, []byte) error) error {
	start := b.start(s.segmentKey)
	skip := int(from-start) / chunkSize
	at := start + xlog.LSN(skip*chunkSize)
	return a.decompress(b, s, skip, func(chunk []byte) error {
		lo, hi := max(from, at), min(to, at+xlog.LSN(len(chunk)))
		begin := at
		at += xlog.LSN(len(chunk))
		if lo >= hi {
			return nil
		}
		return each(lo, chunk[lo-begin:hi-begin])
	})
}

// decompress calls each with the chunks of a compressed or partial segment, starting at number skip.
func (a *Archive) decompress(b *branch, s *segment, skip int, each func([]byte) error) error {
	if !s.compressed {
		err := a.readPartial(b, s, skip, each)
		if !notExist(err) {
			return err
		} // compressed meanwhile
	}
	f, err := os.Open(b.path(s.segmentKey, compressedSuffix))
	if notExist(err) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("read WAL archive: %w", err)
	}
	defer f.Close()
	want := segmentInfo{timeline: s.timeline, system: b.info().System, start: b.start(s.segmentKey), size: uint32(b.info().SegmentSize)}
	return a.codec.decompress(f, want, skip, each)
}

func (a *Archive) readPartial(b *branch, s *segment, skip int, each func([]byte) error) error {
	f, err := os.Open(b.path(s.segmentKey, partialSuffix))
	if err != nil {
		return fmt.Errorf("read WAL archive: %w", err)
	}
	defer f.Close()
	have := int64(s.end - b.start(s.segmentKey))
	buf := make([]byte, max(0, min(chunkSize, have-int64(skip)*chunkSize)))
	for off := int64(skip) * chunkSize; off < have; off += chunkSize {
		part := buf[:min(chunkSize, have-off)]
		if _, err := f.ReadAt(part, off); errors.Is(err, io.EOF) {
			return damagedf("its partial file is too short")
		} else if err != nil {
			return fmt.Errorf("read WAL archive: %w", err)
		}
		if err := each(part); err != nil {
			return err
		}
	}
	return nil
}
