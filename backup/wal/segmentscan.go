package wal

import "holdfast/backup/wal/xlog"

// scannerAt returns a scanner at the start of a segment, and an empty summary of it. If the preceding segments
// exist, the scanner knows the record that continues into the segment. That record's changes are in no other
// summary: if it cannot be read, the summary says that everything changed.
func (a *Archive) scannerAt(b *branch, key segmentKey) (*xlog.Scanner, *summary, error) {
	history, err := a.history(b, key.timeline)
	if err != nil {
		return nil, nil, err
	}
	config := xlog.ScannerConfig{SegmentSize: b.info().SegmentSize, Timeline: key.timeline, History: history, System: b.info().System}
	sum := &summary{key: key, changes: &xlog.Changes{}}
	scan, err := a.scanUpTo(b, key, config)
	if err != nil {
		sum.changes.MarkUnknown() // Verify reports the damage
		scan = xlog.NewScanner(config, b.start(key))
	}
	return scan, sum, nil
}

// scanUpTo scans from the last record that ends before a segment to the start of the segment.
func (a *Archive) scanUpTo(b *branch, key segmentKey, config xlog.ScannerConfig) (*xlog.Scanner, error) {
	at, err := a.lastBefore(b, key, config)
	if err != nil {
		return nil, err
	}
	scan := xlog.NewScanner(config, at)
	return scan, a.scanTimeline(b, key.timeline, at, b.start(key), scan, func(*xlog.Record) {})
}

// lastBefore returns the start of the last record that ends before a segment, or the segment's start if the archive
// has no WAL before it.
func (a *Archive) lastBefore(b *branch, key segmentKey, config xlog.ScannerConfig) (xlog.LSN, error) {
	for before := key; ; {
		before.n--
		s := a.segment(b, before)
		if s == nil || s.end < b.limit(before) {
			return b.start(key), nil
		}
		last, err := a.lastIn(b, before, config)
		if err != nil || last != 0 {
			return last, err
		}
	}
}

// lastIn returns the start of the last record that ends in a complete segment, or 0. Without a summary it scans only
// this segment: if many summaries were missing, scanning further back could read the whole archive.
func (a *Archive) lastIn(b *branch, key segmentKey, config xlog.ScannerConfig) (last xlog.LSN, err error) {
	if s := a.segment(b, key); s != nil && s.summary != nil {
		return s.summary.last, nil
	}
	if sum, err := readSummary(b.path(key, summarySuffix), key, a.codec, false); err == nil {
		return sum.last, nil
	}
	scan := xlog.NewScanner(config, b.start(key))
	err = a.scanTimeline(b, key.timeline, b.start(key), b.limit(key), scan, func(r *xlog.Record) { last = r.Start })
	return last, err
}

// scanTimeline scans the WAL between two positions in the segments of one timeline, excluding its ancestors.
func (a *Archive) scanTimeline(b *branch, timeline uint32, from, to xlog.LSN, scan *xlog.Scanner, each func(*xlog.Record)) error {
	return a.stream([]span{{b, timeline, 0, ^xlog.LSN(0)}}, from, to, func(_ xlog.LSN, piece []byte) error {
		scan.Each(piece, each)
		return scan.Err()
	})
}
