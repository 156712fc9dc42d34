package objects

import (
	"sync"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// reservedWait is how long an upload that seems to be one too many waits for
// the metadata to say so.
const reservedWait = 10 * time.Second

// reservations are, by organization, what objects will add to its totals that
// the journal has or gets, and the metadata have not yet. A limit is checked
// against both together.
type reservations struct {
	mu             sync.Mutex
	byOrganization map[string]*reservation
}

type reservation struct {
	deciding sync.Mutex // held while it is decided whether one more is allowed

	mu    sync.Mutex
	held  model.Totals
	count int
	idle  chan struct{} // closed once nothing is held; nil while nobody waits
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

// Reserved returns what is on its way into an organization's totals.
func (s *Service) Reserved(organization string) model.Totals {
	return s.reserved.of(organization).now()
}

// hold adds to what is held until release is called.
func (r *reservation) hold(add model.Totals) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = r.held.Plus(add, 1)
	r.count++
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.held = r.held.Plus(add, -1)
		r.count--
		if r.count == 0 && r.idle != nil {
			close(r.idle)
			r.idle = nil
		}
	})
}

func (r *reservation) now() model.Totals {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// settled is closed once nothing is held.
func (r *reservation) settled() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	return r.idle
}

// reserveObject refuses an object of size bytes that the organization's plan
// has no room for. Otherwise the room is taken until release is called, which
// is to be once the metadata have the object, or once it is not to be.
func (s *Service) reserveObject(organization string, in Upload, size int64) (release func(), err error) {
	return s.reserve(organization, func() model.Totals {
		add := model.Totals{Objects: 1, StorageBytes: size - in.reserved}
		if old, err := s.object(in.Bucket, in.Key); err == nil {
			add = add.Plus(model.Totals{Objects: 1, StorageBytes: old.SizeBytes}, -1)
		}
		return add
	})
}

// reserve is reserveObject for whatever adds to the totals. How much that is, is
// asked only where something limits it: to look up what an upload replaces takes
// a good part of the time it needs.
func (s *Service) reserve(organization string, adds func() model.Totals) (release func(), err error) {
	limited, err := s.limitsObjects(organization)
	if err != nil || !limited {
		return func() {}, err
	}
	add := adds()
	r := s.reserved.of(organization)
	r.deciding.Lock()
	defer r.deciding.Unlock()
	err = s.roomFor(organization, r, add)
	if model.CodeOf(err) == model.CodeForbidden { // unless the metadata are merely behind
		s.waitForReserved(r)
		err = s.roomFor(organization, r, add)
	}
	if err != nil {
		return nil, err
	}
	add.StorageBytes = max(add.StorageBytes, 0) // what a smaller object gives back can be had once the metadata know
	return r.hold(add), nil
}

// limitsObjects reports whether the plan of the organization may refuse an
// object.
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

// roomFor checks what add would make of the totals. What is held is read
// first: what is committed in between counts twice rather than not at all.
func (s *Service) roomFor(organization string, r *reservation, add model.Totals) error {
	held := r.now()
	return s.core.Meta.View(func(tx *meta.Tx) error {
		totals, err := tx.Totals(organization)
		if err != nil {
			return err
		}
		before := totals.Plus(held, 1)
		return s.core.Allowed(tx, organization, before, before.Plus(add, 1))
	})
}

// waitForReserved waits until the metadata have what was deferred, and what is
// on its way into the journal besides.
func (s *Service) waitForReserved(r *reservation) {
	_ = s.core.Meta.Flush()
	timeout := time.NewTimer(reservedWait)
	defer timeout.Stop()
	select {
	case <-r.settled():
	case <-timeout.C:
	case <-s.core.Lifetime.Done():
	}
}
