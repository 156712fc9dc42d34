package offsite

import (
	"context"
	"errors"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
)

// Contents are the machines that have written a copy and the points in it.
type Contents struct {
	Repository string    `json:"repository"`
	Machines   []Machine `json:"machines"` // newest first
	// Points are the moments of checkpoints, newest first. Every moment between two of them can
	// be recovered too.
	Points []time.Time `json:"points"`
	// Latest is the last change in the copy.
	Latest time.Time `json:"latest"`
	// Damage is what had to be passed over.
	Damage []Damage `json:"damage"`
}

// Machine is a run of a machine that wrote to a copy.
type Machine struct {
	Epoch string    `json:"epoch"`
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
}

// List returns what a copy holds. It writes nothing.
func List(ctx context.Context, at Location) (found Contents, err error) {
	c, err := connect(ctx, at, objectstore.Options{})
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	found = Contents{Repository: c.marker.Repository, Machines: []Machine{}, Points: []time.Time{}, Damage: []Damage{}}
	h, err := c.history(ctx)
	if err != nil {
		return found, err
	}
	for claim, err := range h.Claims(ctx) {
		if err != nil {
			return found, err
		}
		found.Machines = append(found.Machines, Machine{claim.Epoch.String(), claim.Machine, claim.Time})
	}
	for p, err := range h.Points(ctx) {
		if err != nil {
			return found, err
		}
		found.Points = append(found.Points, p.Time)
	}
	a, err := h.Activity(ctx)
	found.Latest = a.Time
	for _, p := range h.Ignored {
		found.Damage = append(found.Damage, Damage{Object: p.Key, Reason: p.Err.Error()})
	}
	return found, err
}

// history returns the history of a copy that somebody has written to.
func (c *connection) history(ctx context.Context) (*stream.History, error) {
	h, err := c.repository.History(ctx)
	if errors.Is(err, stream.ErrNoPoint) {
		return nil, model.Errorf(model.CodeConflict, "no appliance has copied anything to %s yet: there is nothing to recover", c.store)
	}
	return h, err
}

// silence is how long the other machine must not have written before it counts as gone.
const silence = 90 * time.Second

// silencePoll is how often to look meanwhile.
const silencePoll = 3 * time.Second

// awaitSilence returns once the machine that wrote last has been silent for long enough, or an error
// when it writes.
func (c *connection) awaitSilence(ctx context.Context, h *stream.History, progress func(Progress)) error {
	first, err := h.Activity(ctx)
	if err != nil {
		return err
	}
	began, age := time.Now(), time.Since(first.Time)
	for waited := time.Duration(0); max(age, 0)+waited < silence; waited = time.Since(began) {
		progress(Progress{Stage: StageSilence, Machine: h.Tip().Machine, Left: silence - max(age, 0) - waited})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(silencePoll):
		}
		newest, err := c.history(ctx)
		if err != nil {
			return err
		}
		now, err := newest.Activity(ctx)
		if err != nil {
			return err
		}
		if now.Epoch != first.Epoch || now.Log != first.Log || !now.Time.Equal(first.Time) {
			return model.Errorf(model.CodeConflict, "%s still writes to %s: stop the appliance there first, or say --take-over, which makes it read-only", newest.Tip().Machine, c.store)
		}
	}
	return nil
}
