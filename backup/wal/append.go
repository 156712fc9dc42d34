package wal

import (
	"context"
	"fmt"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable"
)

// Append checks data, the WAL at position at, and writes it. Sync makes it durable. After an error, the caller must
// call Start again.
func (w *Writer) Append(at xlog.LSN, data []byte) error {
	if w.failed != nil {
		return w.failed
	}
	if at != w.pos {
		return fmt.Errorf("got WAL at %v, want %v", at, w.pos)
	}
	for len(data) > 0 {
		limit := w.branch.limit(segmentKey{w.timeline, w.n})
		n := min(len(data), int(limit-w.pos))
		if err := w.append(data[:n]); err != nil {
			return err
		}
		data = data[n:]
		if w.pos == limit {
			if err := w.finish(); err != nil {
				return err
			}
		}
	}
	return nil
}

// append writes WAL to the open segment.
func (w *Writer) append(data []byte) error {
	if w.file == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	start := w.branch.start(segmentKey{w.timeline, w.n})
	w.scan.Each(data, func(r *xlog.Record) {
		w.sum.add(r, start)
		if outcome, at := r.Outcome(); outcome.Shows() && r.Start >= w.fork && len(w.commits) < maxCommits {
			w.commits = append(w.commits, at)
		}
	})
	if err := w.scan.Err(); err != nil {
		return fmt.Errorf("check received WAL: %w", err)
	}
	if _, err := w.file.WriteAt(data, int64(w.pos-start)); err != nil {
		return fmt.Errorf("write WAL: %w", err)
	}
	w.pos += xlog.LSN(len(data))
	w.unsynced = true
	return nil
}

// open creates the file of the next segment.
func (w *Writer) open() error {
	key := segmentKey{w.timeline, w.n}
	path := w.branch.path(key, partialSuffix)
	if err := durable.Publish(w.archive.fsys, path, 0o600, w.allocate); err != nil {
		return err
	}
	w.archive.setSegment(w.branch, &segment{segmentKey: key, end: w.branch.start(key), stored: int64(w.branch.info().SegmentSize)})
	return w.reopen(path)
}

// allocate allocates the blocks of a segment file, so that a full disk is detected before any WAL is read.
func (w *Writer) allocate(f durable.File) error {
	return f.Allocate(int64(w.branch.info().SegmentSize))
}

func (w *Writer) reopen(path string) (err error) {
	if w.file, err = w.archive.fsys.Reopen(path); err != nil {
		return fmt.Errorf("open partial WAL segment: %w", err)
	}
	return nil
}

// finish syncs and closes a full segment, and moves on to the next.
func (w *Writer) finish() error {
	if err := w.syncFile(); err != nil {
		return err
	}
	if err := w.closeFile(); err != nil {
		return fmt.Errorf("close WAL segment: %w", err)
	}
	key := segmentKey{w.timeline, w.n}
	w.advance(key, w.branch.limit(key), w.sum)
	w.compressor.wake()
	w.n++
	w.sum = &summary{key: segmentKey{w.timeline, w.n}, changes: &xlog.Changes{}}
	return nil
}

func (w *Writer) syncFile() error {
	if err := w.file.Sync(); err != nil {
		w.failed = fmt.Errorf("%w: %w", ErrSync, err)
		return w.failed
	}
	w.unsynced = false
	return nil
}

// Sync makes the appended WAL durable. It returns the end of the last complete record, and the times of the commits
// that became durable since the last call. Report only that end to the server: an incomplete record cannot be
// checked.
func (w *Writer) Sync() (durable xlog.LSN, commits []time.Time, err error) {
	if w.failed != nil {
		return 0, nil, w.failed
	}
	if w.file != nil && w.unsynced {
		if err := w.syncFile(); err != nil {
			return 0, nil, err
		}
		key := segmentKey{w.timeline, w.n}
		w.advance(key, max(w.whole(), w.branch.start(key)), nil)
	}
	commits, w.commits = w.commits, w.commits[:0]
	return w.whole(), commits, nil
}

// whole returns the end of the last complete record received. A record that switches segments ends with its segment,
// and padding follows it; the end is limited to the received WAL, because the server may remove WAL up to this
// position while it still writes the padding.
func (w *Writer) whole() xlog.LSN { return min(w.scan.End(), w.scan.Position()) }

// advance makes a segment readable up to end. sum is the summary of a full segment, otherwise nil.
func (w *Writer) advance(key segmentKey, end xlog.LSN, sum *summary) {
	a := w.archive
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := w.branch.segments[key]; s != nil && end > s.end {
		s.end, s.summary = end, sum
		a.grew(w.branch, key, end, w.since)
		close(a.grown)
		a.grown = make(chan struct{})
	}
}

// WaitFor blocks until the archive durably holds the WAL before lsn on a
// timeline of a generation, or until ctx ends. It ignores gaps; Covers checks
// them.
func (a *Archive) WaitFor(ctx context.Context, generation int, timeline uint32, lsn xlog.LSN) error {
	for {
		a.mu.Lock()
		b, err := a.branch(generation)
		if err != nil {
			a.mu.Unlock()
			return err
		}
		grown, end := a.grown, b.end(timeline)
		size := b.info().SegmentSize
		a.mu.Unlock()
		if size > 0 && end >= lsn.RecordEnd(size) {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return fmt.Errorf("wait for WAL up to %v on timeline %d, archived up to %v: %w", lsn, timeline, end, context.Cause(ctx))
		}
	}
}
