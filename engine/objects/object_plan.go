package objects

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// reservedWait is how long a change that seems to exceed a limit waits for the
// metadata to catch up.
const reservedWait = 10 * time.Second

// reservations hold, by organization, what pending objects will add to its totals. A limit applies to the sum of the
// totals and the reservations.
type reservations struct {
	mu             sync.Mutex
	byOrganization map[string]*reservation
}

type reservation struct {
	deciding sync.Mutex // held while a limit is checked

	mu         sync.Mutex
	held       model.Totals
	committing int           // how many are held until a commit that is about to happen
	idle       chan struct{} // closed once none is; nil unless a caller waits
}

func newReservations() *reservations { return &reservations{byOrganization: map[string]*reservation{}} }

func (r *reservations) of(id string) *reservation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byOrganization[id] == nil {
		r.byOrganization[id] = &reservation{}
	}
	return r.byOrganization[id]
}

// Reserved returns what running uploads will add to an organization's totals.
func (s *Service) Reserved(organization string) model.Totals {
	held, _ := s.reserved.of(organization).now()
	return held
}

// hold adds to the reservation until release is called: soon if it is committing.
func (r *reservation) hold(add model.Totals, committing bool) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = r.held.Plus(add, 1)
	if committing {
		r.committing++
	}
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.held = r.held.Plus(add, -1)
		if !committing {
			return
		}
		r.committing--
		if r.committing == 0 && r.idle != nil {
			close(r.idle)
			r.idle = nil
		}
	})
}

// now returns what is held, and whether some of it is committing.
func (r *reservation) now() (held model.Totals, committing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held, r.committing > 0
}

// drained returns a channel that is closed once nothing is committing.
func (r *reservation) drained() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.committing == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	return r.idle
}

// overPlan is the error for a change that would exceed the organization's plan.
type overPlan struct {
	error
	certain bool // nothing was committing, which the totals may have counted twice
}

// Unwrap returns the error for the client.
func (e *overPlan) Unwrap() error { return e.error }

// withinPlan calls change, and again when the metadata have caught up if it would exceed the organization's plan: the totals may
// not have a deletion yet. It waits in between, and the locks that change takes are shared with other organizations, so change
// gives them back when it returns.
func (s *Service) withinPlan(ctx context.Context, organization string, change func() error) error {
	err := change()
	if _, over := errors.AsType[*overPlan](err); !over {
		return err
	}
	_ = s.core.Meta.Flush()
	timeout := time.NewTimer(reservedWait)
	defer timeout.Stop()
	for {
		err := change()
		if over, ok := errors.AsType[*overPlan](err); !ok || over.certain {
			return err
		}
		select {
		case <-s.reserved.of(organization).drained():
		case <-timeout.C:
			return err
		case <-s.core.Lifetime.Done():
			return context.Cause(s.core.Lifetime)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reserveObject refuses an object of size bytes that would exceed the organization's plan, with an overPlan. Otherwise it
// reserves the bytes until release is called, once the metadata have the object or the upload has failed.
func (s *Service) reserveObject(organization string, b model.Bucket, in Upload, size int64) (release func(), err error) {
	return s.reserve(organization, true, func() model.Totals {
		add := model.Totals{Objects: 1, StorageBytes: size - in.reserved}
		if old, err := s.object(in.Bucket, in.Key); err == nil && b.Versioning != model.VersioningEnabled && !old.Versioned {
			add = add.Plus(model.Totals{Objects: 1, StorageBytes: old.SizeBytes}, -1)
		}
		return add
	})
}

// reserve is reserveObject for any addition to the totals, which is committing or waits for a body first. It calls adds only if
// the plan has a limit: looking up what an upload replaces takes a good part of the upload's time.
func (s *Service) reserve(organization string, committing bool, adds func() model.Totals) (release func(), err error) {
	limited, err := s.limitsObjects(organization)
	if err != nil || !limited {
		return func() {}, err
	}
	add := adds()
	r := s.reserved.of(organization)
	r.deciding.Lock()
	defer r.deciding.Unlock()
	if err := s.withinLimits(organization, r, add); err != nil {
		return nil, err
	}
	add.StorageBytes = max(add.StorageBytes, 0) // freed bytes count once the metadata have the object
	return r.hold(add, committing), nil
}

// reserveTotals is reserve for a caller that holds no locks.
func (s *Service) reserveTotals(ctx context.Context, call *model.Call, committing bool, add model.Totals) (release func(), err error) {
	err = s.withinPlan(ctx, call.Organization, func() (err error) {
		release, err = s.reserve(call.Organization, committing, func() model.Totals { return add })
		return err
	})
	return release, err
}

// limitsObjects reports whether the organization's plan limits objects.
func (s *Service) limitsObjects(organization string) (bool, error) {
	org, err := s.core.Meta.CachedOrganization(organization)
	if err != nil {
		return false, err
	}
	plan, err := s.core.Plan(org.PlanName(s.core.Clock()))
	_, objects := plan.Limits[model.MetricObjects]
	_, bytes := plan.Limits[model.MetricStorageBytes]
	return err != nil || objects || bytes, nil
}

// withinLimits returns an overPlan if the totals after add exceed the plan. It reads the reservation first, so
// that an object committed in between counts twice rather than not at all.
func (s *Service) withinLimits(organization string, r *reservation, add model.Totals) error {
	held, committing := r.now()
	err := s.core.Meta.View(func(tx *meta.Tx) error {
		totals, err := tx.Totals(organization)
		if err != nil {
			return err
		}
		before := totals.Plus(held, 1)
		return s.core.Allowed(tx, organization, before, before.Plus(add, 1))
	})
	if model.CodeOf(err) == model.CodeForbidden {
		return &overPlan{err, !committing}
	}
	return err
}
