package wal

import "holdfast/backup/wal/xlog"

// Position is a place in an incarnation's history.
type Position struct {
	Incarnation int
	Timeline    uint32
	LSN         xlog.LSN
}

// Leads reports whether the history of an incarnation, up to the end of its
// latest timeline, goes through a position. A backup can be rolled forward into
// it when it does so through the backup's end: one that was still being made
// where the history forked off has pages from what came after on the other.
func (a *Archive) Leads(from Position, incarnation int) bool {
	t := Target{Incarnation: incarnation, LSN: 1}
	spans, err := a.targetSpans(&t)
	if err != nil {
		return false
	}
	for _, s := range spans {
		if s.branch.number == from.Incarnation && s.timeline == from.Timeline && s.from <= from.LSN && from.LSN <= s.to {
			return true
		}
	}
	return false
}
