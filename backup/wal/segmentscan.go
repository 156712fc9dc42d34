package wal

import "holdfast/backup/wal/xlog"

// scannerAt returns a scanner at the start of a segment, and an empty summary of it. If the preceding segments
// exist, the scanner knows the record that continues into the segment. Those before the segment of a fork are the
// parent's. That record's changes are in no other summary of the history: if it cannot be read, the summary says that
// everything changed.
func (a *Archive) scannerAt(b *branch, key segmentKey) (*xlog.Scanner, *summary, error) {
	history, err := a.history(b, key.timeline)
	if err != nil {
		return nil, nil, err
	}
	spans, err := a.spans(b.number, key.timeline)
	if err != nil { // the parent was removed
		spans = []span{{b, key.timeline, 0, ^xlog.LSN(0)}}
	}
	config := xlog.ScannerConfig{SegmentSize: b.info().SegmentSize, Timeline: key.timeline, History: history, System: b.info().System}
	sum := &summary{key: key, changes: &xlog.Changes{}}
	scan, err := a.scanUpTo(spans, key.n, config)
	if err != nil {
		sum.changes.MarkUnknown() // Verify reports the damage
		scan = xlog.NewScanner(config, b.start(key))
	}
	return scan, sum, nil
}

// scanUpTo scans from the last record that ends before segment number n to the start of the segment.
func (a *Archive) scanUpTo(spans []span, n uint64, config xlog.ScannerConfig) (*xlog.Scanner, error) {
	at, err := a.lastBefore(spans, n, config)
	if err != nil {
		return nil, err
	}
	scan := xlog.NewScanner(config, at)
	return scan, a.scanSpans(spans, at, xlog.LSN(n*config.SegmentSize), scan, func(*xlog.Record) {})
}

// lastBefore returns the start of the last record that ends before segment number n, or the segment's start if the
// archive has no WAL before it.
func (a *Archive) lastBefore(spans []span, n uint64, config xlog.ScannerConfig) (xlog.LSN, error) {
	start := xlog.LSN(n * config.SegmentSize)
	for limit := start; limit > 0; limit -= xlog.LSN(config.SegmentSize) {
		b, s := a.pick(spans, uint64(limit)/config.SegmentSize-1, limit)
		if s == nil {
			break
		}
		last, err := a.lastIn(spans, b, s, config)
		if err != nil || last != 0 {
			return last, err
		}
	}
	return start, nil
}

// lastIn returns the start of the last record that ends in a complete segment, or 0. Without a summary it scans only
// this segment: if many summaries were missing, scanning further back could read the whole archive.
func (a *Archive) lastIn(spans []span, b *branch, s *segment, config xlog.ScannerConfig) (last xlog.LSN, err error) {
	if s.summary != nil {
		return s.summary.last, nil
	}
	if sum, err := readSummary(b.path(s.segmentKey, summarySuffix), s.segmentKey, a.codec, false); err == nil {
		return sum.last, nil
	}
	start := b.start(s.segmentKey)
	scan := xlog.NewScanner(config, start)
	err = a.scanSpans(spans, start, b.limit(s.segmentKey), scan, func(r *xlog.Record) { last = r.Start })
	return last, err
}

// scanTimeline scans the WAL between two positions in the segments of one timeline, excluding its ancestors.
func (a *Archive) scanTimeline(b *branch, timeline uint32, from, to xlog.LSN, scan *xlog.Scanner, each func(*xlog.Record)) error {
	return a.scanSpans([]span{{b, timeline, 0, ^xlog.LSN(0)}}, from, to, scan, each)
}

// scanSpans scans the WAL between two positions.
func (a *Archive) scanSpans(spans []span, from, to xlog.LSN, scan *xlog.Scanner, each func(*xlog.Record)) error {
	return a.stream(spans, from, to, func(_ xlog.LSN, piece []byte) error {
		scan.Each(piece, each)
		return scan.Err()
	})
}

// isAtFork reports whether a timeline begins in a segment, so that the WAL before the segment is its parent's.
func (a *Archive) isAtFork(b *branch, key segmentKey) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	parent, _, fork, err := a.forkOf(b, key.timeline)
	return err == nil && parent != nil && uint64(fork)/b.info().SegmentSize == key.n
}
