package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"holdfast/backup/wal/xlog"
)

// FindLost returns as a gap the first WAL between a position and the end of a generation's history that the archive has had
// and lacks now, and the generation that it belongs to: segments that are missing or whose file has another size or, if read
// is set, damaged content. It returns nil if there is none. No WAL is pruned meanwhile.
func (a *Archive) FindLost(ctx context.Context, from Position, generation int, read bool) (lost *Gap, of int, err error) {
	spans, err := a.spans(generation, 0)
	if err != nil {
		return nil, 0, err
	}
	size := segmentSizeOf(spans)
	if size == 0 {
		return nil, 0, nil
	}
	end := a.endOf(spans)
	for n := uint64(from.LSN) / size; n*size < uint64(end); n++ {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		damage := a.checkSegment(spans, n, end, read)
		switch isLost := errors.Is(damage, errMissing) || errors.Is(damage, errGone) || errors.Is(damage, errDamaged); {
		case damage == nil && lost == nil:
			continue
		case damage == nil:
			return lost, of, nil
		case !isLost:
			return nil, 0, damage
		case lost == nil:
			s := spanOf(spans, n)
			lost, of = &Gap{Timeline: s.timeline, From: max(from.LSN, xlog.LSN(n*size)), Reason: gapError(spans, n, damage).Error()}, s.branch.number
		}
		lost.To = xlog.LSN((n + 1) * size)
	}
	return lost, of, nil
}

// endOf returns the end of the WAL of spans.
func (a *Archive) endOf(spans []span) (end xlog.LSN) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range spans {
		end = max(end, min(s.to, s.branch.end(s.timeline)))
	}
	return end
}

// checkSegment checks the file of segment number n, whose WAL ends at end or after it.
func (a *Archive) checkSegment(spans []span, n uint64, end xlog.LSN, read bool) error {
	b, s := a.pick(spans, n, min(end, xlog.LSN((n+1)*segmentSizeOf(spans))))
	switch {
	case s == nil:
		return errMissing
	case !s.compressed:
		return nil // it was scanned by Open, or written since
	case read:
		return a.decompress(b, s, 0, func([]byte) error { return nil })
	}
	info, err := os.Stat(b.path(s.segmentKey, compressedSuffix))
	if notExist(err) {
		return errMissing
	}
	if err == nil && info.Size() != s.stored {
		return damagedf("the size of its file has changed")
	}
	return err
}

// AddGap records WAL of a generation that is lost.
func (a *Archive) AddGap(generation int, g Gap) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.branch(generation)
	if err != nil {
		return err
	}
	if err := a.addGap(b, g); err != nil {
		return fmt.Errorf("record a gap: %w", err)
	}
	return nil
}

// addGap records a gap, in the order of their positions. The caller holds mu.
func (a *Archive) addGap(b *branch, g Gap) error {
	return a.record(b, func(i *Generation) {
		after := func(other Gap) bool { return other.To > g.To }
		at := slices.IndexFunc(i.Gaps, after)
		if at < 0 {
			at = len(i.Gaps)
		}
		i.Gaps = slices.Insert(slices.Clone(i.Gaps), at, g)
	})
}
