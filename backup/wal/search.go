package wal

import (
	"context"
	"fmt"

	"holdfast/backup/wal/xlog"
)

// search scans the segments of spans to find a target.
type search struct {
	archive *Archive
	ctx     context.Context
	target  Target
	spans   []span
	size    uint64

	last     Point    // the last wanted commit; Start 0 = none
	lastTime int64    // the latest timestamp of a wanted commit
	lastIn   uint64   // the segment it is in, until its position is known
	next     xlog.LSN // the first unwanted commit; 0 = none
	limit    Point    // the record before next
	ahead    int64    // the latest timestamp since next
}

// byTime searches for a time. It skips segments whose summary shows that they do not change the result.
func (s *search) byTime() (Resolution, error) {
	end, err := s.each(s.segmentByTime)
	if err != nil {
		return Resolution{}, err
	}
	if s.lastIn != 0 {
		err := s.records(s.lastIn, func(r *xlog.Record) {
			if outcome, _ := r.Outcome(); outcome.Shows() {
				s.last = pointOf(r)
			}
		})
		if err != nil {
			return Resolution{}, err
		}
	}
	switch {
	case s.next == 0:
		if err := s.reachesTime(end); err != nil {
			return Resolution{}, err
		}
		if s.limit, err = s.lastBefore(end); err != nil {
			return Resolution{}, err
		}
	case s.limit.Start == 0 && uint64(s.next)/s.size > uint64(s.target.Since)/s.size: // the record before it is in another segment
		if s.limit, err = s.lastBefore(s.next); err != nil {
			return Resolution{}, err
		}
	}
	return s.resolution(), nil
}

// reachesTime checks that the archive would contain any commit up to the target.
func (s *search) reachesTime(end xlog.LSN) error {
	latest := s.target.Idle
	if at := xlog.FromTimestamp(s.lastTime); s.last.Start != 0 && at.After(latest) {
		latest = at
	}
	if s.target.Time.After(latest) {
		return &OutsideError{Latest: latest, LatestLSN: end}
	}
	return nil
}

func (s *search) segmentByTime(n uint64, b *branch, seg *segment) error {
	sum, err := s.summaryOf(n, b, seg)
	if err != nil {
		return err
	}
	target := xlog.ToTimestamp(s.target.Time)
	switch {
	case sum.commits == 0:
		return nil
	case s.next == 0 && sum.maxTime <= target:
		s.last, s.lastIn = Point{}, n
		s.noteTime(sum.maxTime)
		s.noteTime(sum.lastTime)
		return nil
	case s.next != 0 && sum.minTime > target:
		s.ahead = max(s.ahead, sum.maxTime)
		return nil
	}
	var before Point
	return s.records(n, func(r *xlog.Record) {
		if outcome, at := r.Outcome(); outcome.Shows() {
			s.commit(pointOf(r), before, xlog.ToTimestamp(at), target)
		}
		before = pointOf(r)
	})
}

// commit processes the commits in WAL order.
func (s *search) commit(at, before Point, stamp, target int64) {
	switch {
	case stamp > target && s.next == 0:
		s.next, s.limit, s.ahead = at.Start, before, stamp
	case stamp > target:
		s.ahead = max(s.ahead, stamp)
	case s.next != 0 && s.ahead-stamp <= clockSlack.Microseconds():
		// Out of order: it returned after a commit with a later timestamp.
	default:
		s.last, s.lastIn, s.next = at, 0, 0
		s.noteTime(stamp)
	}
}

// noteTime records the timestamp of a wanted commit, and discards timestamps from before the clock was set back.
func (s *search) noteTime(stamp int64) {
	if s.lastTime-stamp > clockSlack.Microseconds() {
		s.lastTime = stamp
	}
	s.lastTime = max(s.lastTime, stamp)
}

func (s *search) byLSN() (Resolution, error) {
	lsn := s.target.LSN.RecordEnd(s.size)
	end, err := s.each(func(uint64, *branch, *segment) error { return nil })
	if err != nil {
		return Resolution{}, err
	}
	if lsn > end {
		return Resolution{}, &OutsideError{Latest: s.target.Idle, LatestLSN: end}
	}
	if s.last, err = s.lastBefore(lsn); err != nil {
		return Resolution{}, err
	}
	s.limit = s.last
	return s.resolution(), nil
}

// lastBefore returns the last record that ends at or before lsn.
func (s *search) lastBefore(lsn xlog.LSN) (last Point, err error) {
	n := uint64(lsn-1) / s.size
	err = s.records(n, func(r *xlog.Record) {
		if r.End <= lsn {
			last = pointOf(r)
		}
	})
	if err == nil && last.Start == 0 && n > uint64(s.target.Since)/s.size {
		return s.lastBefore(xlog.LSN(n * s.size)) // a long record fills the segment
	}
	if err == nil && last.Start == 0 {
		err = fmt.Errorf("there is no record between %v and %v", s.target.Since, lsn)
	}
	return last, err
}

// each calls visit with the segments starting at Since, and returns their end. A gap before the target is an error.
func (s *search) each(visit func(uint64, *branch, *segment) error) (end xlog.LSN, err error) {
	end = s.target.Since
	for n := uint64(s.target.Since) / s.size; ; n++ {
		if err := s.ctx.Err(); err != nil {
			return end, err
		}
		b, seg := s.pick(n)
		if seg == nil || seg.end <= xlog.LSN(n*s.size) {
			return end, s.ended(n, end)
		}
		if err := visit(n, b, seg); err != nil {
			return end, err
		}
		if end = seg.end; end < xlog.LSN((n+1)*s.size) {
			return end, s.ended(n, end)
		}
	}
}

// pick returns segment number n, complete or not. Without a complete one, it returns the one that reaches furthest within
// its span: a timeline whose WAL ends before its fork has less of the segment than its parent, whose own ends at the fork.
func (s *search) pick(n uint64) (*branch, *segment) {
	if b, seg := s.archive.pick(s.spans, n, xlog.LSN((n+1)*s.size)); seg != nil {
		return b, seg
	}
	return s.archive.longest(s.spans, n)
}

// summaryOf returns the summary of a segment that pick returned. Of one that ends at a fork, it has the commits only.
func (s *search) summaryOf(n uint64, b *branch, seg *segment) (*summary, error) {
	whole, err := s.archive.summaryOf(b, seg.segmentKey)
	if err != nil || whole.end <= seg.end {
		return whole, err
	}
	cut := &summary{key: seg.segmentKey}
	return cut, s.records(n, func(r *xlog.Record) {
		if outcome, at := r.Outcome(); outcome.Shows() {
			cut.addCommit(xlog.ToTimestamp(at))
		}
	})
}

// ended returns an error if the target is beyond end, where segment number n is missing or ends too early, and there is
// WAL after that.
func (s *search) ended(n uint64, end xlog.LSN) error {
	if s.next != 0 || s.target.LSN != 0 && s.target.LSN <= end {
		return nil
	}
	last := s.spans[len(s.spans)-1]
	s.archive.mu.Lock()
	beyond := last.branch.end(last.timeline) > xlog.LSN((n+1)*s.size)
	s.archive.mu.Unlock()
	if beyond {
		return gapError(s.spans, n, errMissing)
	}
	return nil
}

// records calls each with every record that ends in segment number n. It starts one segment earlier, to include the
// record that continues into it, unless Since is in n: what begins before Since is not asked for, and may be pruned at any time.
func (s *search) records(n uint64, each func(*xlog.Record)) error {
	b, seg := s.pick(n)
	if seg == nil {
		return gapError(s.spans, n, errMissing)
	}
	start := xlog.LSN(n * s.size)
	from := start
	if _, before := s.archive.pick(s.spans, n-1, start); before != nil && n > uint64(s.target.Since)/s.size {
		from = start - xlog.LSN(s.size)
	}
	scan := xlog.NewScanner(xlog.ScannerConfig{
		SegmentSize: s.size, Timeline: s.spans[len(s.spans)-1].timeline, History: s.archive.historyOf(s.spans), System: b.info().System,
	}, from)
	return s.archive.stream(s.spans, from, seg.end, func(_ xlog.LSN, piece []byte) error {
		scan.Each(piece, func(r *xlog.Record) {
			if r.End > start {
				each(r)
			}
		})
		if err := s.ctx.Err(); err != nil {
			return err
		}
		return scan.Err()
	})
}

// pointOf returns the position of r; place adds the generation and timeline.
func pointOf(r *xlog.Record) Point { return Point{Start: r.Start, End: r.End} }

func (s *search) resolution() Resolution {
	r := Resolution{Last: s.place(s.last), Limit: s.place(s.limit)}
	if s.lastTime != 0 {
		r.Commit = xlog.FromTimestamp(s.lastTime)
	}
	return r
}

// place adds the generation and timeline of a record.
func (s *search) place(p Point) Point {
	for _, sp := range s.spans {
		p.Generation, p.Timeline = sp.branch.number, sp.timeline
		if p.Start < sp.to {
			break
		}
	}
	return p
}
