package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"holdfast/internal/objectstore"
)

// History is the epochs of a repository as the newest claim sees them: each one up to
// where the next begins. It reads older claims when they are needed. It is not safe
// for concurrent use.
type History struct {
	repo    *Repository
	spans   []*span   // newest first
	lost    uint64    // a log object of the newest epoch that awaitLost has waited for
	Ignored []Problem // objects that are not what they should be, and were passed over
}

// Problem is a damaged or foreign object.
type Problem struct {
	Key string
	Err error
}

// IsClaim reports whether the object has the key of a claim.
func (p Problem) IsClaim() bool { return strings.HasPrefix(p.Key, epochsPrefix) }

// IsLog reports whether the object is one of the log: what follows it is of no use.
func (p Problem) IsLog() bool {
	return strings.HasPrefix(p.Key, dataPrefix) && strings.Contains(p.Key, "/log/")
}

// IsOf reports whether the object is the checkpoint of a point.
func (p Problem) IsOf(point Point) bool { return p.Key == point.key() }

// span is the part of an epoch that counts.
type span struct {
	claim  Claim
	to     uint64 // the last log object that counts; none is known for the newest epoch
	last   Point  // the last point that counts; zero means none, except in the newest epoch
	newest bool
	points []Point // ascending, once they were listed
	listed bool
}

func (s *span) from() uint64 { return s.claim.Cut.Log + 1 }

// has reports whether a point of the epoch counts.
func (s *span) has(p Point) bool { return s.newest || s.last != (Point{}) && p.key() <= s.last.key() }

// History reads the newest claim. It returns ErrNoPoint when nobody has claimed an
// epoch yet. Objects below "epoch/" that are not claims are passed over; one that may be a claim,
// but of a later master key or version, is an error.
func (r *Repository) History(ctx context.Context) (*History, error) {
	all, err := r.epochs(ctx)
	if err != nil {
		return nil, err
	}
	var ignored []Problem
	for _, e := range all {
		c, err := r.readClaim(ctx, e)
		if err == nil {
			h := r.newHistory(c)
			h.Ignored = ignored
			return h, nil
		}
		if !isJunk(err) {
			return nil, err
		}
		ignored = append(ignored, Problem{e.key(), err})
	}
	return nil, fmt.Errorf("%w: no machine has written yet", ErrNoPoint)
}

// epochs lists what claims there may be, first the one that would be the newest.
func (r *Repository) epochs(ctx context.Context) (all []Epoch, err error) {
	for info, err := range r.store.List(ctx, epochsPrefix, "") {
		if err != nil {
			return nil, fmt.Errorf("list the epochs: %w", err)
		}
		if e, ok := parseEpoch(info.Key[len(epochsPrefix):]); ok {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Epoch) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), strings.Compare(a.String(), b.String()))
	})
	return all, nil
}

func (r *Repository) newHistory(c Claim) *History {
	return &History{repo: r, spans: []*span{{claim: c, to: math.MaxUint64, newest: true}}}
}

// Tip returns the newest claim.
func (h *History) Tip() Claim { return h.spans[0].claim }

// Claims yields the claims that lead to the newest epoch, newest first.
func (h *History) Claims(ctx context.Context) iter.Seq2[Claim, error] {
	return func(yield func(Claim, error) bool) {
		for s, err := range h.all(ctx) {
			if err != nil {
				yield(Claim{}, err)
				return
			}
			if !yield(s.claim, nil) {
				return
			}
		}
	}
}

// older reads the claim before the oldest known one. It reports whether there is one.
func (h *History) older(ctx context.Context) (bool, error) {
	c := h.spans[len(h.spans)-1].claim
	if c.Parent == (Epoch{}) {
		return false, nil
	}
	parent, err := h.repo.readClaim(ctx, c.Parent)
	if err != nil {
		return false, err
	}
	h.spans = append(h.spans, &span{claim: parent, to: c.Cut.Log, last: c.Cut.Point})
	return true, nil
}

// all yields the spans from the newest on.
func (h *History) all(ctx context.Context) iter.Seq2[*span, error] {
	return func(yield func(*span, error) bool) {
		for i := 0; ; i++ {
			if i == len(h.spans) {
				if more, err := h.older(ctx); err != nil {
					yield(nil, err)
					return
				} else if !more {
					return
				}
			}
			if !yield(h.spans[i], nil) {
				return
			}
		}
	}
}

// spanOf returns the span that has a log object.
func (h *History) spanOf(ctx context.Context, seq uint64) (*span, error) {
	for s, err := range h.all(ctx) {
		if err != nil {
			return nil, err
		}
		if s.from() <= seq {
			return s, nil
		}
	}
	return nil, corrupt("no epoch has log object %d", seq)
}

// list lists the points of a span that count.
func (h *History) list(ctx context.Context, s *span) ([]Point, error) {
	if s.listed || !s.newest && s.last == (Point{}) {
		return s.points, nil
	}
	s.points = nil
	e := s.claim.Epoch
	for info, err := range h.repo.store.List(ctx, e.pointsPrefix(), "") {
		if err != nil {
			return nil, fmt.Errorf("list the points of epoch %s: %w", e, err)
		}
		if p, ok := parsePoint(e, info.Key); ok && s.has(p) {
			s.points = append(s.points, p)
		}
	}
	s.listed = !s.newest
	return s.points, nil
}

// Points yields the points of a repository, newest first. They need not be usable.
func (h *History) Points(ctx context.Context) iter.Seq2[Point, error] {
	return func(yield func(Point, error) bool) {
		for s, err := range h.all(ctx) {
			var points []Point
			if err == nil {
				points, err = h.list(ctx, s)
			}
			if err != nil {
				yield(Point{}, err)
				return
			}
			for _, p := range slices.Backward(points) {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}

// Activity is the newest that the machine of the newest epoch has written.
type Activity struct {
	Epoch Epoch
	Log   uint64
	Time  time.Time // by the clock of the store
}

// Activity lists what the newest epoch has written last. Two that differ mean that the
// machine is alive.
func (h *History) Activity(ctx context.Context) (Activity, error) {
	s := h.spans[0]
	a := Activity{Epoch: s.claim.Epoch, Log: s.claim.Cut.Log, Time: s.claim.Time}
	points, err := h.list(ctx, s)
	if err != nil {
		return a, err
	}
	after := ""
	if len(points) > 0 {
		p := points[len(points)-1]
		a.Log, after = p.Through, p.Epoch.logKey(p.Through)
		info, err := h.repo.store.Stat(ctx, p.key())
		if err != nil {
			return a, fmt.Errorf("look at the newest point: %w", err)
		}
		a.Time = info.Modified
	}
	for info, err := range h.repo.store.List(ctx, s.claim.Epoch.dir()+"log/", after) {
		if err != nil {
			return a, fmt.Errorf("list the log of epoch %s: %w", s.claim.Epoch, err)
		}
		if seq, ok := parseLogKey(s.claim.Epoch, info.Key); ok {
			a.Log, a.Time = seq, info.Modified
		}
	}
	return a, nil
}

// end returns the Cut of the newest epoch: the end of the part of its log that is
// whole, and the last point that this part makes consistent.
func (h *History) end(ctx context.Context) (Cut, error) {
	points, err := h.list(ctx, h.spans[0])
	if err != nil {
		return Cut{}, err
	}
	cut, err := h.anchor(ctx, points)
	if err != nil {
		return Cut{}, err
	}
	for l, err := range h.logs(ctx, cut.Log, cut.Hash) {
		if Damaged(err) {
			h.Ignored = append(h.Ignored, Problem{h.Tip().Epoch.logKey(cut.Log + 1), err})
			break
		}
		if err != nil {
			return Cut{}, err
		}
		cut.Log, cut.Hash, cut.Last = l.header.seq, l.hash, l.header.last
	}
	for _, p := range points {
		if p.Through <= cut.Log {
			cut.Point = p
		}
	}
	return cut, h.nameLost(ctx, cut.Log+1, cut.Last)
}

// lastListed returns the last log object of the newest epoch that follows one in a list; that one itself if none does.
func (h *History) lastListed(ctx context.Context, after uint64) (uint64, error) {
	e := h.Tip().Epoch
	last := after
	for info, err := range h.repo.store.List(ctx, e.dir()+"log/", e.logKey(after)) {
		if err != nil {
			return 0, fmt.Errorf("list the log of epoch %s: %w", e, err)
		}
		if seq, ok := parseLogKey(e, info.Key); ok {
			last = seq
		}
	}
	return last, nil
}

// pausesInFlight is how many pauses are made for a log object that may never have been stored: its machine stored a few later
// ones and ended.
const pausesInFlight = 2

// awaitLost pauses if the newest epoch goes on after a log object that is missing. It returns notFound if it does not, or after
// the last pause.
func (h *History) awaitLost(ctx context.Context, missing uint64, paused int, notFound error) error {
	last, err := h.lastListed(ctx, missing)
	if err != nil {
		return err
	}
	pauses := maxPauses
	if last < missing+maxInFlight {
		pauses = pausesInFlight
	}
	switch {
	case last == missing || h.lost == missing:
		return notFound
	case paused >= pauses:
		h.lost = missing
		return notFound
	}
	return pause(ctx, paused)
}

// nameLost adds to Ignored that the newest epoch has lost a log object, if it has
// later ones that were not stored before that one was. until is up to when the log before it leads.
func (h *History) nameLost(ctx context.Context, missing uint64, until time.Time) error {
	e := h.Tip().Epoch
	last, err := h.lastListed(ctx, missing)
	if err != nil || last < missing+maxInFlight {
		return err
	}
	if _, err = h.repo.store.Stat(ctx, e.logKey(missing)); err == nil { // a machine goes on writing
		return nil
	}
	if !errors.Is(err, objectstore.ErrNotFound) {
		return fmt.Errorf("look for a log object: %w", err)
	}
	h.Ignored = append(h.Ignored, Problem{e.logKey(missing), lostAfter(until, corrupt("it is missing, and the log goes on up to %d", last))})
	return nil
}

// lostAfter adds to the damage of a log object what it means.
func lostAfter(until time.Time, damage error) error {
	if until.IsZero() {
		return fmt.Errorf("nothing of the log can be read: %w", damage)
	}
	return fmt.Errorf("the log can be read up to %s: %w", until.UTC().Format(time.RFC3339), damage)
}

// anchor returns a log object of the newest epoch that is known to be whole with all
// before it: the one that its newest checkpoint names, or the one before its first.
func (h *History) anchor(ctx context.Context, points []Point) (Cut, error) {
	first := h.Tip().Cut
	for _, p := range slices.Backward(points) {
		c, err := h.repo.Checkpoint(ctx, p)
		if err == nil && c.Replay >= first.Log {
			return Cut{Log: c.Replay, Hash: c.Hash, Last: c.Time}, nil
		}
		if err != nil && !Damaged(err) {
			return Cut{}, err
		}
	}
	return Cut{Log: first.Log, Hash: first.Hash, Last: first.Last}, nil
}
