package wal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable"
)

// Keep is a position from which WAL is needed: the start of a kept backup, or End.
type Keep struct {
	Generation int
	Start      xlog.LSN
}

// End is after all WAL. Keeping a generation from End keeps only its newest segment: a server that may continue
// there needs it.
const End = ^xlog.LSN(0)

// Prune removes the WAL that no kept backup can be rolled forward with: in each generation the WAL before the oldest
// backup, and generations that no kept backup leads to. A backup leads to its generation, and from there to every
// generation that forked off after it. A generation with a writer is pruned only up to a Keep of its own. The newest
// segment of a needed generation stays. A damaged generation stays, and so does every generation that forked off
// from it. Prune returns the number of bytes it freed.
func (a *Archive) Prune(keep []Keep) (freed int64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(keep) == 0 {
		return 0, errors.New("prune WAL archive: nothing is named to be kept, so nothing is removed")
	}
	needed := a.needed(keep)
	for number, b := range a.branches {
		from, some := needed[number]
		if !some && b.writer != nil {
			continue
		}
		n, err := a.pruneBranch(b, from, !some)
		freed += n
		if err != nil {
			return freed, fmt.Errorf("prune WAL archive: %w", err)
		}
	}
	return freed, nil
}

// Needs returns a function that reports whether Prune, for the same arguments, would keep a file that the archive may lack. The newest
// segment of a generation, which stays too, is not known of it.
func (a *Archive) Needs(keep []Keep) func(StoredFile) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	needed, sizes := a.needed(keep), map[int]uint64{}
	for number, b := range a.branches {
		sizes[number] = b.info().SegmentSize
	}
	return func(f StoredFile) bool {
		from, some := needed[f.Generation]
		if !some || f.isSmall() || sizes[f.Generation] == 0 {
			return some // without its generation file, the positions of a generation are not known
		}
		_, _, to, ok := f.Segment(sizes[f.Generation])
		return ok && to > from
	}
}

// needed returns the position from which WAL is needed, by generation.
func (a *Archive) needed(keep []Keep) map[int]xlog.LSN {
	for number := range a.damaged {
		keep = append(slices.Clip(keep), Keep{number, 0}) // its history may be needed after a repair
	}
	needed := map[int]xlog.LSN{}
	for _, k := range keep {
		if from, some := needed[k.Generation]; !some || k.Start < from {
			needed[k.Generation] = k.Start
		}
	}
	for again := true; again; {
		again = false
		for number, b := range a.branches {
			p := b.info().Parent
			if p == nil {
				continue
			}
			from, some := needed[p.Generation]
			if own, already := needed[number]; some && from <= p.Fork && (!already || own > p.Fork) {
				needed[number], again = p.Fork, true
			}
		}
	}
	return needed
}

// pruneBranch removes all segments, or those that end at or before from, except the newest. It removes a summary
// after its segment, since a summary alone is harmless.
func (a *Archive) pruneBranch(b *branch, from xlog.LSN, all bool) (freed int64, err error) {
	idle := b.compressing.TryLock()
	if idle {
		defer b.compressing.Unlock()
	}
	newest, removed := b.newest(), false
	for key, s := range b.segments {
		if !all && (b.limit(key) > from || key == newest) {
			continue
		}
		if !s.compressed && (b.writer != nil || !idle) {
			continue // a compressor may be working on it
		}
		for _, suffix := range []string{compressedSuffix, partialSuffix, summarySuffix} {
			path := b.path(key, suffix)
			info, err := os.Lstat(path)
			if notExist(err) {
				continue
			}
			if err == nil {
				freed += info.Size()
				err = a.fsys.Remove(path)
			}
			if err != nil {
				return freed, err
			}
			removed = true
		}
		delete(b.segments, key)
	}
	if !removed {
		return freed, nil
	}
	return freed, durable.SyncDir(a.fsys, b.dir)
}

// Sizes is the disk usage of a generation.
type Sizes struct {
	Segments int
	Stored   int64 // bytes of their files
	WAL      int64 // bytes of WAL in them
}

// Sizes returns the disk usage of a generation.
func (a *Archive) Sizes(generation int) (sizes Sizes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.branches[generation]
	if b == nil {
		return sizes
	}
	for key, s := range b.segments {
		sizes.Segments++
		sizes.Stored += s.stored
		sizes.WAL += int64(s.end - b.start(key))
	}
	return sizes
}

// Problem is a damaged or missing file.
type Problem struct {
	Generation int
	File       string
	Err        error
}

// Verify reads every segment and summary and returns the damaged ones. For an excluded generation it returns the
// file that caused the exclusion. Another process may prune the archive meanwhile.
func (a *Archive) Verify(ctx context.Context) (problems []Problem, err error) {
	for number, damaged := range a.damaged {
		problems = append(problems, Problem{number, filepath.Base(damaged.path), damaged.err})
	}
	for _, b := range a.snapshot() {
		for _, timeline := range b.timelines() {
			found, err := a.verifyTimeline(ctx, b, timeline)
			if problems = append(problems, found...); err != nil {
				return problems, err
			}
		}
	}
	return problems, nil
}

func (a *Archive) verifyTimeline(ctx context.Context, b *branch, timeline uint32) (problems []Problem, err error) {
	pruned := true // so far, everything
	for _, s := range b.of(timeline) {
		if err := ctx.Err(); err != nil {
			return problems, err
		}
		file, err := a.verifySegment(b, s)
		if pruned = pruned && errors.Is(err, errGone); err != nil && !pruned {
			problems = append(problems, Problem{b.number, file, err})
		}
	}
	return problems, nil
}

// snapshot returns a copy of all branches.
func (a *Archive) snapshot() (all []*branch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.branches {
		c := newBranch(b.number, b.dir, *b.info())
		for key, s := range b.segments {
			copied := *s
			c.segments[key] = &copied
		}
		maps.Copy(c.histories, b.histories)
		all = append(all, c)
	}
	return all
}

func (a *Archive) verifySegment(b *branch, s *segment) (file string, err error) {
	if !s.compressed {
		file = filepath.Base(b.path(s.segmentKey, partialSuffix))
		scan, _, err := a.scanPartial(b, s)
		if now := a.compressedSince(b, s, err); now != nil {
			return a.verifySegment(b, now)
		}
		if err == nil {
			err = b.checkReached(s, scan)
		}
		return file, err
	}
	file = filepath.Base(b.path(s.segmentKey, compressedSuffix))
	if err := a.decompress(b, s, 0, func([]byte) error { return nil }); err != nil {
		return file, err
	}
	path := b.path(s.segmentKey, summarySuffix)
	_, err = readSummary(path, s.segmentKey, a.codec, true)
	if notExist(err) {
		return file, nil // it is rebuilt when needed
	}
	return filepath.Base(path), err
}

// Window is the range that a backup can be restored to, in the history of a timeline.
type Window struct {
	From, To xlog.LSN // WAL without a gap
	// FirstCommit and LastCommit are the times of the first and last commits in the range, or zero if there are
	// none.
	FirstCommit, LastCommit time.Time
}

// Window returns the range that a backup that starts at from can be restored to. It ends at the first gap. Timeline 0 is
// the generation's latest.
func (a *Archive) Window(ctx context.Context, generation int, timeline uint32, from xlog.LSN) (w Window, err error) {
	spans, err := a.spans(generation, timeline)
	if err != nil {
		return w, err
	}
	// next = 1 makes the search end at a gap without an error.
	s := &search{archive: a, ctx: ctx, target: Target{Since: from}, spans: spans, size: segmentSizeOf(spans), next: 1}
	if s.size == 0 {
		return w, nil
	}
	w.From = from
	w.To, err = s.each(func(n uint64, b *branch, seg *segment) error {
		sum, err := s.summaryOf(n, b, seg)
		if err != nil || sum.commits == 0 {
			return err
		}
		if w.FirstCommit.IsZero() {
			w.FirstCommit = xlog.FromTimestamp(sum.firstTime)
		}
		w.LastCommit = sum.lastCommit()
		return nil
	})
	return w, err
}
