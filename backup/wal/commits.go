package wal

import (
	"context"
	"fmt"

	"holdfast/backup/wal/xlog"
)

// CommittedSince reports whether the archive has a commit at or after a position, in the history of a timeline of a
// generation, and where its WAL ends. The error wraps ErrGap if the archive does not reach the position, or has WAL
// after a gap.
func (a *Archive) CommittedSince(ctx context.Context, generation int, timeline uint32, from xlog.LSN) (found bool, end xlog.LSN, err error) {
	spans, err := a.spans(generation, timeline)
	if err != nil {
		return false, 0, err
	}
	s := &search{archive: a, ctx: ctx, target: Target{Since: from}, spans: spans, size: segmentSizeOf(spans)}
	if s.size == 0 {
		return false, 0, fmt.Errorf("%w: generation %d has received nothing", ErrGap, generation)
	}
	last := spans[len(spans)-1]
	a.mu.Lock()
	end = last.branch.end(last.timeline)
	a.mu.Unlock()
	if end < from {
		return false, end, gapError(spans, uint64(from)/s.size, errMissing)
	}
	end, err = s.each(func(n uint64, b *branch, seg *segment) error {
		if n == uint64(from)/s.size && uint64(from)%s.size != 0 {
			return s.records(n, func(r *xlog.Record) {
				outcome, _ := r.Outcome()
				found = found || outcome.Shows() && r.Start >= from
			})
		}
		sum, err := s.summaryOf(n, b, seg)
		found = found || err == nil && sum.commits > 0
		return err
	})
	return found, end, err
}
