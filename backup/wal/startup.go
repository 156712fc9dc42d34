package wal

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable"
)

// recoverFiles completes interrupted operations in all generations.
func (a *Archive) recoverFiles() error {
	for _, number := range slices.Sorted(maps.Keys(a.branches)) { // parents first, whose WAL continues in them
		b := a.branches[number]
		if err := a.resolveDuplicates(b); err != nil {
			return fmt.Errorf("recover WAL archive: %w", err)
		}
		for _, timeline := range b.timelines() {
			for _, s := range b.of(timeline) {
				if err := a.recoverPartial(b, s); err != nil {
					return fmt.Errorf("recover WAL archive: %w", err)
				}
			}
		}
	}
	return nil
}

// resolveDuplicates handles segments that exist both compressed and partial: a crash happened after the compressed
// file was published and before the partial one was removed. It reads the compressed file completely before it
// removes the partial one.
func (a *Archive) resolveDuplicates(b *branch) error {
	for key, s := range b.segments {
		partial := b.path(key, partialSuffix)
		info, err := os.Lstat(partial)
		if !s.compressed || notExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		err = a.decompress(b, s, 0, func([]byte) error { return nil })
		if errors.Is(err, errDamaged) {
			a.log.Warn("a compressed WAL segment is damaged and is made again from its partial file", "segment", b.name(key), "err", err)
			b.segments[key] = &segment{segmentKey: key, stored: info.Size(), end: b.start(key)}
			continue
		}
		if err == nil {
			err = a.fsys.Remove(partial)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recoverPartial finds the end of a partial segment. One that is full is compressed once a generation has a writer:
// it is as durable as a compressed one, and a restore does not wait for the compression.
func (a *Archive) recoverPartial(b *branch, s *segment) error {
	if s.compressed {
		return nil
	}
	sum, err := a.findEnd(b, s)
	if err == nil && s.end == b.limit(s.segmentKey) {
		s.summary = sum
	}
	return err
}

// scanPartials finds the end of every partial segment.
func (a *Archive) scanPartials() error {
	for _, b := range a.branches {
		for _, s := range b.segments {
			if s.compressed {
				continue
			}
			if _, err := a.findEnd(b, s); err != nil && a.compressedSince(b, s, err) == nil {
				return err
			}
		}
	}
	return nil
}

// findEnd scans a partial segment for its end: the end of its last complete record, or of the segment if the next
// segment exists. In that case all of it was received, and the last record continues there.
func (a *Archive) findEnd(b *branch, s *segment) (*summary, error) {
	scan, sum, err := a.scanPartial(b, s)
	if err != nil {
		return nil, err
	}
	s.end = max(scan.End(), b.start(s.segmentKey))
	next := a.segment(b, segmentKey{s.timeline, s.n + 1})
	if next != nil && scan.Position() == b.limit(s.segmentKey) {
		s.end = b.limit(s.segmentKey)
	}
	return sum, nil
}

// scanPartial scans a partial segment as far as its records are correct, starting at the last record before it.
// Callers that require more use checkReached.
func (a *Archive) scanPartial(b *branch, s *segment) (*xlog.Scanner, *summary, error) {
	scan, sum, err := a.scannerAt(b, s.segmentKey)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.Open(b.path(s.segmentKey, partialSuffix))
	if err != nil {
		return nil, nil, fmt.Errorf("read WAL archive: %w", err)
	}
	defer f.Close()
	buf := make([]byte, chunkSize)
	for off := uint64(0); off < b.info().SegmentSize && scan.Err() == nil; off += chunkSize {
		n, err := f.ReadAt(buf, int64(off))
		if n == 0 {
			break // a crash interrupted its creation
		}
		scan.Each(buf[:n], func(r *xlog.Record) { sum.add(r, b.start(s.segmentKey)) })
		if n < chunkSize && err != nil {
			break
		}
	}
	return scan, sum, nil
}

// checkReached returns an error if the scan of a partial segment ended before the end of its durable content.
func (b *branch) checkReached(s *segment, scan *xlog.Scanner) error {
	if max(scan.End(), b.start(s.segmentKey)) >= s.end {
		return nil
	}
	if err := scan.Err(); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if scan.Position() < s.end {
		return damagedf("its partial file is too short")
	}
	return nil // its last record continues in the next segment
}

// summarizePartial returns the summary of the durable content of a partial segment.
func (a *Archive) summarizePartial(b *branch, s *segment) (*summary, error) {
	scan, sum, err := a.scanPartial(b, s)
	if err != nil {
		return nil, err
	}
	if err := b.checkReached(s, scan); err != nil {
		return nil, &GapError{Generation: b.number, Segment: b.name(s.segmentKey), Err: err}
	}
	return sum, nil
}

// compressSegment publishes the summary and the compressed file of a full segment, then removes its partial file.
func (a *Archive) compressSegment(b *branch, key segmentKey, sum *summary) error {
	partial := b.path(key, partialSuffix)
	from, err := os.Open(partial)
	if err != nil {
		return fmt.Errorf("compress WAL segment: %w", err)
	}
	defer from.Close()
	if err := sum.publish(a.fsys, b.path(key, summarySuffix), a.codec); err != nil {
		return err
	}
	info := segmentInfo{timeline: key.timeline, system: b.info().System, start: b.start(key), size: uint32(b.info().SegmentSize)}
	var stored int64
	err = durable.Publish(a.fsys, b.path(key, compressedSuffix), 0o600, func(to durable.File) (err error) {
		stored, err = a.codec.compress(to, from, info)
		return err
	})
	if err != nil {
		return err
	}
	rest := *sum
	rest.changes = nil // reread from disk when needed
	a.setSegment(b, &segment{segmentKey: key, compressed: true, end: b.limit(key), stored: stored, summary: &rest})
	if err := a.fsys.Remove(partial); err != nil {
		a.log.Warn("a partial WAL segment could not be removed; the next start removes it", "err", err)
	}
	return nil
}
