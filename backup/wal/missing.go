package wal

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"holdfast/backup/wal/xlog"
)

// Missing returns the WAL that Prune would keep for the same arguments and that the archive lacks, although there is
// later WAL in its generation or in one that forked off after it. Recorded gaps are not missing.
func (a *Archive) Missing(keep []Keep) (problems []Problem) {
	a.mu.Lock()
	defer a.mu.Unlock()
	needed := a.needed(keep)
	for _, number := range slices.Sorted(maps.Keys(needed)) {
		b := a.branches[number]
		if b == nil {
			continue // its readers find no WAL at all
		}
		for _, timeline := range b.timelines() {
			problems = append(problems, a.missingBefore(b, timeline, needed)...)
			problems = append(problems, a.missingOn(b, timeline, needed[number])...)
		}
	}
	return problems
}

// missingOn returns the WAL that a timeline lacks before its last segment.
func (a *Archive) missingOn(b *branch, timeline uint32, needed xlog.LSN) (problems []Problem) {
	end := max(needed, a.begins(b, timeline))
	for _, s := range b.of(timeline) {
		problems = append(problems, b.lacks(timeline, end, b.start(s.segmentKey))...)
		end = max(end, s.end)
	}
	return problems
}

// missingBefore returns the WAL that the parent of a timeline lacks before the fork. Both have the segment of the
// fork.
func (a *Archive) missingBefore(b *branch, timeline uint32, needed map[int]xlog.LSN) []Problem {
	parent, from, fork, err := a.forkOf(b, timeline)
	if err != nil || parent == nil {
		return nil // the parent is not in this archive
	}
	start, some := needed[parent.number]
	if !some {
		return nil
	}
	end := max(start, a.begins(parent, from), parent.end(from))
	return parent.lacks(from, end, xlog.LSN(uint64(fork)&^(b.info().SegmentSize-1)))
}

// begins returns the start of a timeline's own WAL, or 0 if the WAL before it is not in this archive.
func (a *Archive) begins(b *branch, timeline uint32) xlog.LSN {
	_, _, fork, _ := a.forkOf(b, timeline)
	return fork
}

// lacks returns the first segment missing between two positions, unless that is a recorded gap.
func (b *branch) lacks(timeline uint32, from, to xlog.LSN) []Problem {
	for _, gap := range b.info().Gaps {
		if gap.Timeline == timeline && gap.From <= from && to <= gap.To {
			return nil
		}
	}
	if from >= to {
		return nil
	}
	for n := uint64(from) / b.info().SegmentSize; n < uint64(to)/b.info().SegmentSize; n++ {
		key := segmentKey{timeline, n}
		if _, err := os.Stat(b.path(key, compressedSuffix)); notExist(err) { // otherwise it was compressed meanwhile
			return []Problem{{b.number, b.name(key), fmt.Errorf("%w, and there is WAL after it", errMissing)}}
		}
	}
	return nil
}
