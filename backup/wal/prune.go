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
)

// Keep is a position from which WAL is needed: the start of a backup that is
// kept, or End.
type Keep struct {
	Incarnation int
	Start       xlog.LSN
}

// End is behind all WAL there ever is. To keep an incarnation from there keeps
// no more than its newest segment: the place where a server goes on that may
// come back.
const End = ^xlog.LSN(0)

// Prune removes the WAL that no kept backup can be rolled forward with: in its
// incarnation what lies before the oldest, and what lies in incarnations that
// no kept backup leads to. A backup leads to its incarnation, and from there to
// each that forked off after it. An incarnation with a writer is only ever cut
// before a Keep of its own. The newest segment of one that is needed stays. One
// that is damaged stays, and so does all that forked off from it. It
// returns how many bytes are free now.
func (a *Archive) Prune(keep []Keep) (freed int64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(keep) == 0 {
		return 0, errors.New("prune WAL archive: nothing is named to be kept, so nothing is removed")
	}
	for number := range a.damaged {
		keep = append(slices.Clip(keep), Keep{number, 0}) // whatever leads through it, once it is mended
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

// needed is, by incarnation, from where WAL is needed.
func (a *Archive) needed(keep []Keep) map[int]xlog.LSN {
	needed := map[int]xlog.LSN{}
	for _, k := range keep {
		if from, some := needed[k.Incarnation]; !some || k.Start < from {
			needed[k.Incarnation] = k.Start
		}
	}
	for again := true; again; {
		again = false
		for number, b := range a.branches {
			p := b.info().Parent
			if p == nil {
				continue
			}
			from, some := needed[p.Incarnation]
			if own, already := needed[number]; some && from <= p.Fork && (!already || own > p.Fork) {
				needed[number], again = p.Fork, true
			}
		}
	}
	return needed
}

// pruneBranch removes the segments that end by from but for the newest, or all
// of them. A summary goes after its segment: alone it is no harm.
func (a *Archive) pruneBranch(b *branch, from xlog.LSN, all bool) (freed int64, err error) {
	newest := b.newest()
	for key, s := range b.segments {
		if !all && (b.limit(key) > from || key == newest) {
			continue
		}
		if b.writer != nil && !s.compressed {
			continue // it may be the packer's
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
		}
		delete(b.segments, key)
	}
	if b.info().SegmentSize == 0 {
		return freed, nil
	}
	return freed, a.fsys.SyncDir(b.dir)
}

// Sizes is what an incarnation takes on disk.
type Sizes struct {
	Segments int
	Stored   int64 // bytes of their files
	WAL      int64 // bytes of WAL in them
}

// Sizes returns what an incarnation takes on disk.
func (a *Archive) Sizes(incarnation int) (sizes Sizes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.branches[incarnation]
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

// Problem is a file that is not as it was written.
type Problem struct {
	Incarnation int
	File        string
	Err         error
}

// Verify reads every segment and summary and says which are damaged. Of an
// incarnation that is left out it names the file for which it is.
func (a *Archive) Verify(ctx context.Context) (problems []Problem, err error) {
	for number, damaged := range a.damaged {
		problems = append(problems, Problem{number, filepath.Base(damaged.path), damaged.err})
	}
	for _, b := range a.snapshot() {
		for _, s := range b.segments {
			if err := ctx.Err(); err != nil {
				return problems, err
			}
			file, err := a.verifySegment(b, s)
			if err != nil {
				problems = append(problems, Problem{b.number, file, err})
			}
		}
	}
	return problems, nil
}

// snapshot is a copy of all branches as they are now.
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
		if now := a.packed(b, s, err); now != nil {
			return a.verifySegment(b, now)
		}
		if err == nil {
			err = b.reaches(s, scan)
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
		return file, nil // it is made when it is needed
	}
	return filepath.Base(path), err
}

// Window is what can be restored from a backup on the way to a timeline.
type Window struct {
	From, To xlog.LSN // WAL without a gap
	// FirstCommit and LastCommit are the times of the first and last commits
	// there; zero when there is none.
	FirstCommit, LastCommit time.Time
}

// Window returns what can be restored with a backup that starts at from.
func (a *Archive) Window(ctx context.Context, incarnation int, timeline uint32, from xlog.LSN) (w Window, err error) {
	spans, err := a.spans(incarnation, timeline)
	if err != nil {
		return w, err
	}
	// Found at once, so that what is behind a gap is no error.
	s := &search{archive: a, ctx: ctx, target: Target{Since: from}, spans: spans, size: segmentSizeOf(spans), next: 1}
	if s.size == 0 {
		return w, nil
	}
	w.From = from
	w.To, err = s.each(func(_ uint64, b *branch, seg *segment) error {
		sum, err := a.summaryOf(b, seg.segmentKey)
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
