package wal

import "holdfast/backup/wal/xlog"

// Position is a position in a generation's history.
type Position struct {
	Generation int
	Timeline   uint32
	LSN        xlog.LSN
}

// Leads reports whether the history of a generation, up to the end of its latest timeline, contains a position. A
// backup can be rolled forward to the generation if the history contains the backup's end: a backup that was still
// running at the fork has pages from after it.
func (a *Archive) Leads(from Position, generation int) bool {
	spans, err := a.spans(generation, 0)
	if err != nil {
		return false
	}
	for _, s := range spans {
		if s.branch.number == from.Generation && s.timeline == from.Timeline && s.from <= from.LSN && from.LSN <= s.to {
			return true
		}
	}
	return false
}

// GapAfter returns the first recorded gap between a position and the end of a generation whose history contains it, nil if
// there is none: a backup that starts at the position cannot be rolled forward past the gap.
func (a *Archive) GapAfter(from Position, generation int) *Gap {
	spans, err := a.spans(generation, 0)
	if err != nil {
		return nil
	}
	contained := false
	for _, s := range spans {
		contained = contained || s.branch.number == from.Generation && s.timeline == from.Timeline
		if !contained {
			continue
		}
		var first *Gap
		for _, gap := range s.branch.info().Gaps {
			if gap.Timeline == s.timeline && gap.To > from.LSN && gap.From < s.to && (first == nil || gap.From < first.From) {
				first = &gap
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}
