package objects

import (
	"sync"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// reservedWait is how long an upload that seems to exceed a limit waits for the
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

	mu    sync.Mutex
	held  model.Totals
	count int
	idle  chan struct{} // closed once nothing is held; nil unless a caller waits
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
	return s.reserved.of(organization).now()
}

// hold adds to the reservation until release is called.
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

// drained returns a channel that is closed once nothing is held.
func (r *reservation) drained() <-chan struct{} {
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

// reserveObject refuses an object of size bytes that would exceed the organization's plan. Otherwise it reserves the
// bytes until release is called, once the metadata have the object or the upload has failed.
func (s *Service) reserveObject(organization string, b model.Bucket, in Upload, size int64) (release func(), err error) {
	return s.reserve(organization, func() model.Totals {
		add := model.Totals{Objects: 1, StorageBytes: size - in.reserved}
		if old, err := s.object(in.Bucket, in.Key); err == nil && b.Versioning != model.VersioningEnabled && !old.Versioned {
			add = add.Plus(model.Totals{Objects: 1, StorageBytes: old.SizeBytes}, -1)
		}
		return add
	})
}

// reserve is reserveObject for any addition to the totals. It calls adds only if the plan has a limit: looking up what
// an upload replaces takes a good part of the upload's time.
func (s *Service) reserve(organization string, adds func() model.Totals) (release func(), err error) {
	limited, err := s.limitsObjects(organization)
	if err != nil || !limited {
		return func() {}, err
	}
	add := adds()
	r := s.reserved.of(organization)
	r.deciding.Lock()
	defer r.deciding.Unlock()
	err = s.withinLimits(organization, r, add)
	if model.CodeOf(err) == model.CodeForbidden { // unless the metadata only lag behind
		s.waitForReserved(r)
		err = s.withinLimits(organization, r, add)
	}
	if err != nil {
		return nil, err
	}
	add.StorageBytes = max(add.StorageBytes, 0) // freed bytes count once the metadata have the object
	return r.hold(add), nil
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

// withinLimits checks the totals after add. It reads the reservation first, so
// that an object committed in between counts twice rather than not at all.
func (s *Service) withinLimits(organization string, r *reservation, add model.Totals) error {
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

// waitForReserved waits until the metadata have the queued changes and the running uploads.
func (s *Service) waitForReserved(r *reservation) {
	_ = s.core.Meta.Flush()
	timeout := time.NewTimer(reservedWait)
	defer timeout.Stop()
	select {
	case <-r.drained():
	case <-timeout.C:
	case <-s.core.Lifetime.Done():
	}
}
