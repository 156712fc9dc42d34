package offsite

import (
	"context"
	"errors"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
)

// PruneGrace is how old an object must be before a Pruner removes it.
const PruneGrace = stream.Grace

// Pruned is what a prune removes, or would remove.
type Pruned struct {
	Points  int   `json:"points"`
	Objects int   `json:"objects"` // points included
	Bytes   int64 `json:"bytes"`
	// Locked is how many objects remain because their retention has not ended.
	Locked int `json:"locked"`
	// LockedSince is the time of the oldest point that is older than the retention and remains only because it is locked,
	// with what recoveries from its moment on need; nil if there is none.
	LockedSince *time.Time `json:"locked_since"`
}

// Pruner is a plan to remove what no recovery within the retention needs.
type Pruner struct {
	connection *connection
	plan       *stream.PrunePlan
}

// PlanPrune reads what can be removed. The caller closes the Pruner.
func PlanPrune(ctx context.Context, at Location, now time.Time, retention time.Duration) (*Pruner, error) {
	c, err := connect(ctx, at, objectstore.Options{})
	if err != nil {
		return nil, err
	}
	p := &Pruner{connection: c}
	p.plan, err = c.repository.PlanPrune(ctx, now, now.Add(-retention))
	if errors.Is(err, stream.ErrNoPoint) {
		err = model.Errorf(model.CodeConflict, "nothing is removed, because no point in %s can be read: `holdfast offsite verify` names the damage", at.URL)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return p, nil
}

// Plan returns what Run removes.
func (p *Pruner) Plan() Pruned {
	planned := Pruned{Points: len(p.plan.Points), Objects: len(p.plan.Points) + len(p.plan.Objects), Bytes: p.plan.Bytes}
	if since := p.plan.LockedSince; !since.IsZero() {
		planned.LockedSince = &since
	}
	return planned
}

// Run removes it. Files that are locked remain. It needs credentials that may delete. It can be repeated, with a new plan.
func (p *Pruner) Run(ctx context.Context) (done Pruned, err error) {
	done = p.Plan()
	done.Locked, err = p.connection.repository.Prune(ctx, p.plan)
	if errors.Is(err, objectstore.ErrLocked) { // a point: what it refers to must remain, too
		err = &model.Error{
			Code: model.CodeConflict, Err: err,
			Message: "a point to be removed was locked meanwhile, so it and what a recovery to it needs remain: prune again",
		}
	}
	done.Objects -= done.Locked
	return done, err
}

// Close closes the store.
func (p *Pruner) Close() error { return p.connection.close() }
