package wal

import (
	"context"
	"errors"
	"fmt"
	"os"

	"holdfast/backup/wal/xlog"
)

// segment returns a copy of a segment, or nil if it does not exist.
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

// compressedSince returns the compressed segment if err means that the partial file disappeared because the segment
// was compressed: by this process or, if the archive is read-only, by another. Otherwise it returns nil.
func (a *Archive) compressedSince(b *branch, s *segment, err error) *segment {
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

// summaryOf returns the summary of a segment, without its changed pages.
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

// loadSummary reads the summary of a segment. If it is missing, damaged or incomplete, loadSummary rebuilds it from the WAL, and
// publishes it if the disk takes it.
func (a *Archive) loadSummary(b *branch, s *segment, changes bool) (*summary, error) {
	if !s.compressed {
		sum, err := a.summarizePartial(b, s)
		if now := a.compressedSince(b, s, err); now != nil {
			return a.loadSummary(b, now, changes)
		}
		return sum, err
	}
	path := b.path(s.segmentKey, summarySuffix)
	sum, err := readSummary(path, s.segmentKey, a.codec, changes)
	if err == nil && (sum.format == summaryFormat || !a.isAtFork(b, s.segmentKey)) {
		return sum, nil
	}
	if sum, err = a.makeSummary(b, s); err == nil && a.lock != nil {
		_ = sum.publish(a.fsys, path, a.codec) // else the next one that needs it rebuilds it
	}
	return sum, err
}

// makeSummary builds a compressed segment's summary from the WAL.
func (a *Archive) makeSummary(b *branch, s *segment) (*summary, error) {
	scan, sum, err := a.scannerAt(b, s.segmentKey)
	if err != nil {
		return nil, err
	}
	start, limit := b.start(s.segmentKey), b.limit(s.segmentKey)
	err = a.scanTimeline(b, s.timeline, start, limit, scan, func(r *xlog.Record) { sum.add(r, start) })
	return sum, err
}

// Covers checks that the archive has every segment of the WAL between two positions, in the history of a timeline of
// a generation. Otherwise it returns a *GapError, which wraps ErrGap. Covers is fast, because it checks only names,
// sizes and headers of files; Check reads the WAL.
func (a *Archive) Covers(generation int, timeline uint32, from, to xlog.LSN) error {
	spans, err := a.spans(generation, timeline)
	if err != nil {
		return err
	}
	size := segmentSizeOf(spans)
	if size == 0 {
		return fmt.Errorf("%w: generation %d has received nothing", ErrGap, generation)
	}
	to = to.RecordEnd(size)
	for n := uint64(from) / size; from < to && n <= uint64(to-1)/size; n++ {
		b, s := a.pick(spans, n, min(to, xlog.LSN((n+1)*size)))
		if s == nil {
			return gapError(spans, n, errMissing)
		}
		if err := a.checkHeader(b, s); err != nil {
			return gapError(spans, n, err)
		}
	}
	return a.checkFirstRecord(spans, from, to)
}

// checkHeader checks the header and the size of a segment.
func (a *Archive) checkHeader(b *branch, s *segment) error {
	if !s.compressed {
		return nil // it was scanned by Open, or written since
	}
	stop := errors.New("enough")
	err := a.decompress(b, s, 0, func([]byte) error { return stop })
	if errors.Is(err, stop) {
		info, err := os.Stat(b.path(s.segmentKey, compressedSuffix))
		if err != nil || info.Size() != s.stored {
			return damagedf("the size of its file has changed")
		}
		return nil
	}
	return err
}

// CheckSegment reads a full segment that Stored returned, and checks it.
func (a *Archive) CheckSegment(f StoredFile) error {
	a.mu.Lock()
	b, err := a.branch(f.Generation)
	a.mu.Unlock()
	if err != nil {
		return err
	}
	size := b.info().SegmentSize
	timeline, from, _, ok := f.Segment(size)
	if !ok || f.IsPartial() {
		return damagedf("%s is not a full segment", f)
	}
	s := &segment{segmentKey: segmentKey{timeline, uint64(from) / size}, compressed: true}
	return a.decompress(b, s, 0, func([]byte) error { return nil })
}

// checkFirstRecord checks that WAL from position from on begins with a complete record: in the first segment of the
// archive, the rest of an earlier record is useless.
func (a *Archive) checkFirstRecord(spans []span, from, to xlog.LSN) error {
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
		return gapError(spans, n, fmt.Errorf("the first complete record is at %v, not %v", sum.first, from))
	}
	return nil
}

// Check is Covers, and also reads and checks all of the WAL. progress, if not nil, is called with the position.
func (a *Archive) Check(ctx context.Context, generation int, timeline uint32, from, to xlog.LSN, progress func(xlog.LSN)) error {
	if err := a.Covers(generation, timeline, from, to); err != nil {
		return err
	}
	spans, err := a.spans(generation, timeline)
	if err != nil {
		return err
	}
	to = to.RecordEnd(segmentSizeOf(spans))
	return a.scanPath(ctx, spans, from, to, progress, func(*xlog.Record) error { return nil })
}

// errEnough ends a scan early.
var errEnough = errors.New("enough")

// scanPath calls each with every record that starts between two positions. It reads from the start of the first
// segment, so from need not be the start of a record.
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

// ChangedPages returns the changes that the WAL between two positions made. The error wraps ErrGap if the WAL is not
// complete.
//
// It does not include pages that a relation got without WAL: pages of zeros in a file that grew. The caller must
// therefore also read everything after the previous length of a file.
func (a *Archive) ChangedPages(ctx context.Context, generation int, timeline uint32, from, to xlog.LSN) (*xlog.Changes, error) {
	if err := a.Covers(generation, timeline, from, to); err != nil {
		return nil, err
	}
	spans, err := a.spans(generation, timeline)
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
		return err // it names the segment
	}
	if err != nil {
		return gapError(spans, n, err)
	}
	changes.Merge(sum.changes)
	return nil
}
