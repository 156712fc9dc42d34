package wal

import (
	"context"
	"errors"
	"fmt"
	"os"

	"holdfast/backup/wal/xlog"
)

// segment returns a copy of what is known of a segment, nil when it is not
// there.
func (a *Archive) segment(b *branch, key segmentKey) *segment {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := b.segments[key]
	if s == nil {
		return nil
	}
	copied := *s
	return &copied
}

func (a *Archive) setSegment(b *branch, s *segment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.segments[s.segmentKey] = s
}

// packed returns the compressed segment when a partial one was not found,
// because it has been compressed since: by this process or, where the archive is
// open to be read only, perhaps by another. Else it returns nil.
func (a *Archive) packed(b *branch, s *segment, err error) *segment {
	if !notExist(err) {
		return nil
	}
	if now := a.segment(b, s.segmentKey); now != nil && now.compressed {
		return now
	}
	info, err := os.Stat(b.path(s.segmentKey, compressedSuffix))
	if err != nil {
		return nil
	}
	now := &segment{segmentKey: s.segmentKey, compressed: true, end: b.limit(s.segmentKey), stored: info.Size()}
	a.setSegment(b, now)
	return now
}

// summaryOf returns the summary of a segment that is there, without its
// changed pages.
func (a *Archive) summaryOf(b *branch, key segmentKey) (*summary, error) {
	a.mu.Lock()
	s := b.segments[key]
	if s == nil || s.summary != nil {
		defer a.mu.Unlock()
		if s == nil {
			return nil, errMissing
		}
		return s.summary, nil
	}
	copied := *s
	a.mu.Unlock()
	sum, err := a.loadSummary(b, &copied, false)
	if err != nil || !s.compressed {
		return sum, err
	}
	rest := *sum
	rest.changes = nil
	a.mu.Lock()
	defer a.mu.Unlock()
	s.summary = &rest
	return s.summary, nil
}

// loadSummary reads a summary, or makes it from the WAL, and publishes it,
// where there is none.
func (a *Archive) loadSummary(b *branch, s *segment, changes bool) (*summary, error) {
	if !s.compressed {
		sum, err := a.summarizePartial(b, s)
		if now := a.packed(b, s, err); now != nil {
			return a.loadSummary(b, now, changes)
		}
		return sum, err
	}
	path := b.path(s.segmentKey, summarySuffix)
	sum, err := readSummary(path, s.segmentKey, a.codec, changes)
	if err == nil {
		return sum, nil
	}
	if sum, err = a.makeSummary(b, s); err == nil && a.lock != nil {
		err = sum.publish(a.fsys, path, a.codec)
	}
	return sum, err
}

// makeSummary makes a compressed segment's summary from the WAL.
func (a *Archive) makeSummary(b *branch, s *segment) (*summary, error) {
	scan, sum, err := a.begin(b, s.segmentKey)
	if err != nil {
		return nil, err
	}
	start, limit := b.start(s.segmentKey), b.limit(s.segmentKey)
	err = a.streamOwn(b, s.timeline, start, limit, scan, func(r *xlog.Record) { sum.add(r, start) })
	return sum, err
}

// Covers says whether the archive has every segment of the WAL between two
// positions on the way to a timeline of an incarnation, through its parents. If
// not it returns a *GapError, which wraps ErrGap. Covers looks at the files'
// names, sizes and headers, and is quick; Check reads.
func (a *Archive) Covers(incarnation int, timeline uint32, from, to xlog.LSN) error {
	spans, err := a.spans(incarnation, timeline)
	if err != nil {
		return err
	}
	size := segmentSizeOf(spans)
	if size == 0 {
		return fmt.Errorf("%w: incarnation %d has received nothing", ErrGap, incarnation)
	}
	to = to.RecordEnd(size)
	for n := uint64(from) / size; from < to && n <= uint64(to-1)/size; n++ {
		b, s := a.pick(spans, n, min(to, xlog.LSN((n+1)*size)))
		if s == nil {
			return gapError(spans, n, errMissing)
		}
		if err := a.glance(b, s); err != nil {
			return gapError(spans, n, err)
		}
	}
	return a.startsBy(spans, from, to)
}

// glance checks what can be checked of a segment without reading it.
func (a *Archive) glance(b *branch, s *segment) error {
	if !s.compressed {
		return nil // it was scanned when the archive was opened, or written since
	}
	stop := errors.New("enough")
	err := a.decompress(b, s, 0, func([]byte) error { return stop })
	if errors.Is(err, stop) {
		info, err := os.Stat(b.path(s.segmentKey, compressedSuffix))
		if err != nil || info.Size() != s.stored {
			return damagedf("its file has another size than before")
		}
		return nil
	}
	return err
}

// startsBy checks that a reader that starts at from has whole records: in the
// first segment there is, the end of a record from before it is of no use.
func (a *Archive) startsBy(spans []span, from, to xlog.LSN) error {
	size := segmentSizeOf(spans)
	n := uint64(from) / size
	if from >= to || uint64(from)%size == 0 {
		return nil
	}
	if _, before := a.pick(spans, n-1, xlog.LSN(n*size)); before != nil {
		return nil
	}
	b, s := a.pick(spans, n, min(to, xlog.LSN((n+1)*size)))
	sum, err := a.summaryOf(b, s.segmentKey)
	if err != nil {
		return err
	}
	if sum.first == 0 || from.RecordEnd(size) < sum.first.RecordEnd(size) {
		return gapError(spans, n, fmt.Errorf("the first whole record is at %v, not %v", sum.first, from))
	}
	return nil
}

// Check is Covers that reads all of the WAL and checks it. progress, which may
// be nil, is told how far it is.
func (a *Archive) Check(ctx context.Context, incarnation int, timeline uint32, from, to xlog.LSN, progress func(xlog.LSN)) error {
	if err := a.Covers(incarnation, timeline, from, to); err != nil {
		return err
	}
	spans, err := a.spans(incarnation, timeline)
	if err != nil {
		return err
	}
	to = to.RecordEnd(segmentSizeOf(spans))
	return a.scanPath(ctx, spans, from, to, progress, func(*xlog.Record) error { return nil })
}

// errEnough ends a scan early.
var errEnough = errors.New("enough")

// scanPath gives each the records that start between two positions. It starts
// to read where the segment of from does, so from need not be a record's start.
func (a *Archive) scanPath(ctx context.Context, spans []span, from, to xlog.LSN, progress func(xlog.LSN), each func(*xlog.Record) error) error {
	size := segmentSizeOf(spans)
	start := xlog.LSN(uint64(from) &^ (size - 1))
	last := spans[len(spans)-1]
	scan := xlog.NewScanner(xlog.ScannerConfig{
		SegmentSize: size, Timeline: last.timeline, History: a.historyOf(spans), System: last.branch.info().System,
	}, start)
	err := a.stream(spans, start, to, func(at xlog.LSN, piece []byte) error {
		if progress != nil {
			progress(at)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		scan.Feed(piece)
		for scan.Next() {
			if r := scan.Record(); r.Start >= from {
				if err := each(r); err != nil {
					return err
				}
			}
		}
		return scan.Err()
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	if err == nil && scan.End() < to && from < to {
		return gapError(spans, uint64(scan.End())/size, fmt.Errorf("%w: its records end at %v, not %v", errMissing, scan.End(), to))
	}
	return err
}

// ChangedPages says what the WAL between two positions changed; an error
// wrapping ErrGap when it is not whole.
//
// Pages that a relation got without WAL are not among them: a file that has
// grown holds pages of zeros, or whole ones that are named. So who uses this
// reads, beside the pages it names, all behind the length a file had before.
func (a *Archive) ChangedPages(ctx context.Context, incarnation int, timeline uint32, from, to xlog.LSN) (*xlog.Changes, error) {
	if err := a.Covers(incarnation, timeline, from, to); err != nil {
		return nil, err
	}
	spans, err := a.spans(incarnation, timeline)
	if err != nil {
		return nil, err
	}
	size, changes := segmentSizeOf(spans), &xlog.Changes{}
	to = to.RecordEnd(size)
	for n := uint64(from) / size; from < to && n <= uint64(to-1)/size; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := a.addChanges(spans, n, min(to, xlog.LSN((n+1)*size)), changes); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

func (a *Archive) addChanges(spans []span, n uint64, need xlog.LSN, changes *xlog.Changes) error {
	b, s := a.pick(spans, n, need)
	if s == nil {
		return gapError(spans, n, errMissing)
	}
	sum, err := a.loadSummary(b, s, true)
	if errors.Is(err, ErrGap) {
		return err // which names the segment already
	}
	if err != nil {
		return gapError(spans, n, err)
	}
	changes.Merge(sum.changes)
	return nil
}
