package stream

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/internal/objectstore"
)

// live is what the recovery to any moment from a time on needs. A recovery that is under way, whose machine has stored no
// point yet, may make that time an earlier one.
type live struct {
	repo   *Repository
	since  time.Time
	points map[string]bool // keys
	usable []Point         // of them, those that can be read, newest first
	spans  map[Epoch]*span // all epochs that lead to the newest
	replay uint64          // log objects up to it are not needed
	files  map[Reference]bool
	tip    Epoch            // the newest
	newest uint64           // id of the newest file of that epoch in files
	parts  map[fileID]int64 // how many of each file
	broken []Problem        // points that cannot be read
}

type fileID struct {
	epoch Epoch
	id    uint64
}

// findLive reads the catalogs of all points from a time on, and of the newest usable
// one before, and the log between them. It returns ErrNoPoint where no catalog can be read.
func (r *Repository) findLive(ctx context.Context, since time.Time) (*live, error) {
	l, h, oldest, end, err := r.findPoints(ctx, since)
	if err != nil {
		return nil, err
	}
	return l, l.addFrames(ctx, h, oldest, end)
}

// findPoints is findLive without the log. It also returns what that is read with: the oldest point, and the last log
// object that may name files which only a moment between two points needs.
func (r *Repository) findPoints(ctx context.Context, since time.Time) (l *live, h *History, oldest *Checkpoint, end uint64, err error) {
	if h, err = r.History(ctx); err != nil {
		return nil, nil, nil, 0, err
	}
	l = &live{repo: r, tip: h.Tip().Epoch, since: since, points: map[string]bool{}, spans: map[Epoch]*span{}, files: map[Reference]bool{}, parts: map[fileID]int64{}}
	if err := l.addSpans(ctx, h); err != nil {
		return nil, nil, nil, 0, err
	}
	oldest, end, err = l.addPoints(ctx, h)
	if err != nil {
		return nil, nil, nil, 0, err
	}
	if oldest == nil {
		return nil, nil, nil, 0, fmt.Errorf("%w: no catalog can be read", ErrNoPoint)
	}
	l.replay = oldest.Replay
	return l, h, oldest, end, nil
}

// addSpans adds the epochs. Those after the newest point may be of recoveries that still fetch what they bring back.
func (l *live) addSpans(ctx context.Context, h *History) error {
	pointed := false
	for s, err := range h.all(ctx) {
		if err != nil {
			return err
		}
		l.spans[s.claim.Epoch] = s
		if pointed {
			continue
		}
		points, err := h.list(ctx, s)
		if err != nil {
			return err
		}
		pointed = len(points) > 0
		if from := s.claim.Recovers; !pointed && !from.IsZero() && from.Before(l.since) {
			l.since = from
		}
	}
	return nil
}

// addPoints adds the points. It returns the oldest that is needed, nil for none, and the last log object that is.
func (l *live) addPoints(ctx context.Context, h *History) (oldest *Checkpoint, end uint64, err error) {
	end = ^uint64(0)
	for p, err := range h.Points(ctx) {
		if err != nil {
			return nil, 0, err
		}
		c, err := l.addPoint(ctx, p)
		if err != nil && !Damaged(err) {
			return nil, 0, err
		}
		l.points[p.key()] = true
		if err != nil {
			l.broken = append(l.broken, Problem{p.key(), err})
			continue
		}
		l.usable = append(l.usable, p)
		if oldest = c; p.Time.Before(l.since) {
			break
		}
		end = p.Through
	}
	return oldest, end, nil
}

// addPoint adds the files of a checkpoint. Blocks that were added are not read again.
func (l *live) addPoint(ctx context.Context, p Point) (*Checkpoint, error) {
	c, err := l.repo.Checkpoint(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, ref := range c.blocks {
		if l.files[ref] {
			continue
		}
		entries, _, err := l.repo.readBlock(ctx, ref)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			l.addFile(e.Ref)
		}
		l.addFile(ref)
	}
	return c, nil
}

func (l *live) addFile(ref Reference) {
	if ref.IsZero() || l.files[ref] {
		return
	}
	l.files[ref] = true
	if ref.Epoch == l.tip {
		l.newest = max(l.newest, ref.ID)
	}
	id := fileID{ref.Epoch, ref.ID}
	l.parts[id] = max(l.parts[id], ref.parts())
}

func (l *live) addFrames(ctx context.Context, h *History, from *Checkpoint, end uint64) error {
	for o, err := range h.logs(ctx, from.Replay, from.Hash) {
		if Damaged(err) {
			return nil // what follows cannot be recovered from here anyway
		}
		if err != nil {
			return err
		}
		for _, f := range o.frames {
			if file, ok := f.Body.(File); ok {
				l.addFile(file.Ref)
			}
		}
		if o.header.seq >= end {
			return nil
		}
	}
	return nil
}

// counts reports whether a point is part of the history: one that a machine stored after another had taken over is not.
func (l *live) counts(p Point) bool {
	s := l.spans[p.Epoch]
	return s != nil && s.has(p)
}

// mayBeNew reports whether a file may be one that the machine of the newest epoch is storing, or has stored and is about to refer to.
func (l *live) mayBeNew(id fileID) bool { return id.epoch == l.tip && id.id > l.newest }

// needs reports whether an object is needed. What it cannot name is.
func (l *live) needs(key string) bool {
	if strings.HasPrefix(key, bidsPrefix) {
		return false
	}
	rest, ok := strings.CutPrefix(key, dataPrefix)
	name, _, _ := strings.Cut(rest, "/")
	e, isEpoch := parseEpoch(name)
	if !ok || !isEpoch {
		return true
	}
	s := l.spans[e]
	if strings.HasPrefix(key, e.filesPrefix()) {
		id, part, ok := parsePartKey(e, key)
		return !ok || part < l.parts[fileID{e, id}]
	}
	if _, isPoint := parsePoint(e, key); isPoint {
		return l.points[key]
	}
	if seq, isLog := parseLogKey(e, key); isLog {
		return s != nil && seq > l.replay && seq <= s.to
	}
	return true
}

// Needed is what recoveries to the moments from a time on need.
type Needed struct {
	Points []Point // newest first; those that can be read
	Files  []Reference
	// Damage is what of points and log cannot be read.
	Damage []Problem
}

// Needed reads all points and the log from a time on, and lists the files they need. It
// reads none of those. It returns ErrNoPoint where no point can be read.
func (r *Repository) Needed(ctx context.Context, since time.Time) (*Needed, error) {
	l, h, oldest, _, err := r.findPoints(ctx, since)
	if err != nil {
		return nil, err
	}
	n := &Needed{Points: l.usable, Damage: l.broken}
	if err := n.addLog(ctx, l, h, oldest); err != nil {
		return nil, err
	}
	n.Damage = append(n.Damage, h.Ignored...)
	n.Files = slices.Collect(maps.Keys(l.files))
	return n, nil
}

// addLog reads the log to its end. What follows damage is no use.
func (n *Needed) addLog(ctx context.Context, l *live, h *History, from *Checkpoint) error {
	last, until := from.Replay, from.Time
	for o, err := range h.logs(ctx, from.Replay, from.Hash) {
		if Damaged(err) {
			epoch := h.Tip().Epoch
			if s, err := h.spanOf(ctx, last+1); err == nil {
				epoch = s.claim.Epoch
			}
			n.Damage = append(n.Damage, Problem{epoch.logKey(last + 1), lostAfter(until, err)})
			return nil
		}
		if err != nil {
			return err
		}
		for _, f := range o.frames {
			if file, ok := f.Body.(File); ok {
				l.addFile(file.Ref)
			}
		}
		last, until = o.header.seq, o.header.last
	}
	return h.nameLost(ctx, last+1, until)
}

// objects yields everything that may become garbage.
func (r *Repository) objects(ctx context.Context) iter.Seq2[objectstore.Info, error] {
	return func(yield func(objectstore.Info, error) bool) {
		for _, prefix := range []string{bidsPrefix, dataPrefix} {
			for info, err := range r.store.List(ctx, prefix, "") {
				if !yield(info, err) {
					return
				}
			}
		}
	}
}
