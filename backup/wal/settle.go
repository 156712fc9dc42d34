package wal

import (
	"errors"
	"fmt"
	"os"

	"holdfast/backup/wal/xlog"
)

// settle brings the files of all incarnations into the form they have when
// nothing is under way.
func (a *Archive) settle() error {
	for _, b := range a.branches {
		if err := a.settleDoubles(b); err != nil {
			return fmt.Errorf("settle WAL archive: %w", err)
		}
		for _, timeline := range b.timelines() {
			for _, s := range b.of(timeline) {
				if err := a.settlePartial(b, s); err != nil {
					return fmt.Errorf("settle WAL archive: %w", err)
				}
			}
		}
	}
	return nil
}

// settleDoubles settles segments that are there both compressed and partial: a
// crash came after the one was published and before the other was removed. The
// compressed one is read whole before the other goes.
func (a *Archive) settleDoubles(b *branch) error {
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
			a.log.Warn("a compressed WAL segment is damaged, and made again from its partial file", "segment", b.name(key), "err", err)
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

// settlePartial finds how far a partial segment goes, and compresses it when
// it is full.
func (a *Archive) settlePartial(b *branch, s *segment) error {
	if s.compressed {
		return nil
	}
	sum, err := a.measure(b, s)
	if err != nil || s.end < b.limit(s.segmentKey) {
		return err
	}
	return a.compressSegment(b, s.segmentKey, sum)
}

// measureAll finds how far every partial segment goes.
func (a *Archive) measureAll() error {
	for _, b := range a.branches {
		for _, s := range b.segments {
			if s.compressed {
				continue
			}
			if _, err := a.measure(b, s); err != nil && a.packed(b, s, err) == nil {
				return err
			}
		}
	}
	return nil
}

// measure scans a partial segment. It holds WAL up to its last whole record;
// but where the next segment has been begun, all of it was received, and the
// last record is continued there.
func (a *Archive) measure(b *branch, s *segment) (*summary, error) {
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

// scanPartial scans a partial segment, from the last record before it on, as
// far as its records are right; who needs more of it asks reaches.
func (a *Archive) scanPartial(b *branch, s *segment) (*xlog.Scanner, *summary, error) {
	scan, sum, err := a.begin(b, s.segmentKey)
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
			break // it is shorter than it will be: a crash came early
		}
		scan.Each(buf[:n], func(r *xlog.Record) { sum.add(r, b.start(s.segmentKey)) })
		if n < chunkSize && err != nil {
			break
		}
	}
	return scan, sum, nil
}

// reaches returns an error when a scan of a partial segment has ended before
// what the segment durably holds.
func (b *branch) reaches(s *segment, scan *xlog.Scanner) error {
	if max(scan.End(), b.start(s.segmentKey)) >= s.end {
		return nil
	}
	if err := scan.Err(); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if scan.Position() < s.end {
		return damagedf("its partial file is too short")
	}
	return nil // its last record goes on in the next segment
}

// summarizePartial returns the summary of all that a partial segment durably
// holds.
func (a *Archive) summarizePartial(b *branch, s *segment) (*summary, error) {
	scan, sum, err := a.scanPartial(b, s)
	if err != nil {
		return nil, err
	}
	if err := b.reaches(s, scan); err != nil {
		return nil, &GapError{Incarnation: b.number, Segment: b.name(s.segmentKey), Err: err}
	}
	return sum, nil
}

// compressSegment publishes a full segment and its summary, then removes its
// partial file.
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
	err = publish(a.fsys, b.path(key, compressedSuffix), 0, func(to file) (err error) {
		stored, err = a.codec.compress(to, from, info)
		return err
	})
	if err != nil {
		return err
	}
	rest := *sum
	rest.changes = nil // they stay on disk
	a.setSegment(b, &segment{segmentKey: key, compressed: true, end: b.limit(key), stored: stored, summary: &rest})
	if err := a.fsys.Remove(partial); err != nil {
		a.log.Warn("a partial WAL segment was not removed; it will be when the archive is opened again", "err", err)
	}
	return nil
}
