package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Find returns the newest usable checkpoint at or before a time, of the zero time the
// newest of all. One is usable when its catalog, the log through its Through and all
// its files are there; of the files it looks at sizes only. It returns ErrNoPoint when there
// is none. What makes newer ones unusable is added to Ignored.
func (h *History) Find(ctx context.Context, at time.Time) (*Checkpoint, error) {
	return h.find(ctx, at, func(Entry) bool { return false })
}

// FindLacking is Find, but returns the newest checkpoint that is usable without the files of some entries, those for which
// mayLack holds, if the log does not lead to it from one that is whole. Ignored then ends with what it lacks.
func (h *History) FindLacking(ctx context.Context, at time.Time, mayLack func(Entry) bool) (*Checkpoint, error) {
	before := len(h.Ignored)
	whole, err := h.Find(ctx, at)
	if err != nil && !errors.Is(err, ErrNoPoint) || err == nil && len(h.Ignored) == before {
		return whole, err
	}
	ignored := h.Ignored
	lacking, again := h.find(ctx, at, mayLack)
	h.Ignored = ignored
	switch {
	case errors.Is(again, ErrNoPoint):
		return nil, err
	case again != nil:
		return nil, again
	case whole != nil:
		if leads, err := h.leads(ctx, whole, lacking); err != nil || leads {
			return whole, err
		}
	}
	its := func(p Problem) bool { return p.IsOf(lacking.Point) }
	h.Ignored = ignored[:slices.IndexFunc(ignored, its)+1]
	return lacking, nil
}

// leads reports whether the log is whole from a checkpoint to another one.
func (h *History) leads(ctx context.Context, from, to *Checkpoint) (bool, error) {
	if from.Replay >= to.Through {
		return true, nil
	}
	for l, err := range h.logs(ctx, from.Replay, from.Hash) {
		if err != nil && !Damaged(err) {
			return false, err
		}
		if err != nil || l.header.seq >= to.Through {
			return err == nil, nil
		}
	}
	return false, nil
}

func (h *History) find(ctx context.Context, at time.Time, mayLack func(Entry) bool) (*Checkpoint, error) {
	for p, err := range h.Points(ctx) {
		if Damaged(err) { // a claim: what is before it cannot be found
			h.Ignored = append(h.Ignored, Problem{h.spans[len(h.spans)-1].claim.Parent.key(), err})
			break
		}
		if err != nil {
			return nil, err
		}
		if !at.IsZero() && p.Time.After(at) {
			continue
		}
		c, err := h.verify(ctx, p, mayLack)
		if err == nil {
			return c, nil
		}
		if !Damaged(err) {
			return nil, err
		}
		h.Ignored = append(h.Ignored, Problem{p.key(), err})
	}
	if len(h.Ignored) > 0 {
		return nil, fmt.Errorf("%w; of the newest: %w", ErrNoPoint, h.Ignored[0].Err)
	}
	return nil, ErrNoPoint
}

// verify reads a checkpoint and checks what it needs, but for the files of entries for which mayLack holds.
func (h *History) verify(ctx context.Context, p Point, mayLack func(Entry) bool) (*Checkpoint, error) {
	c, err := h.repo.Checkpoint(ctx, p)
	if err != nil {
		return nil, err
	}
	seen := c.Replay
	for l, err := range h.logs(ctx, c.Replay, c.Hash) {
		if err != nil {
			return nil, err
		}
		if seen = l.header.seq; seen >= c.Through {
			break
		}
	}
	if seen < c.Through {
		return nil, corrupt("the log ends at %d, before %d, which checkpoint %s needs", seen, c.Through, p.key())
	}
	return c, h.repo.checkFiles(ctx, c, mayLack)
}
