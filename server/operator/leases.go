package operator

import (
	"context"
	"sync"

	"holdfast/engine/model"
)

// Leases count the sandboxes that are held, and can end them all.
type Leases struct {
	closing context.Context
	cancel  context.CancelFunc

	mu   sync.Mutex
	held int
}

var errClosing = model.Errorf(model.CodeConflict, "the appliance is being stopped, and the database with it")

// NewLeases returns the leases of one appliance.
func NewLeases() *Leases {
	l := &Leases{}
	l.closing, l.cancel = context.WithCancel(context.Background())
	return l
}

// Close has every sandbox removed, as if its holder had let go, and gives out
// no more.
func (l *Leases) Close() { l.cancel() }

// CloseIdle closes the leases unless one is held, and reports whether it did.
func (l *Leases) CloseIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held > 0 {
		return false
	}
	l.cancel()
	return true
}

// Held is how many there are.
func (l *Leases) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// enter begins a lease, unless there are to be no more.
func (l *Leases) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Err() != nil {
		return false
	}
	l.held++
	return true
}

func (l *Leases) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held--
}
