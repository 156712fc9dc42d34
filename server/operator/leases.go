package operator

import (
	"context"
	"sync"

	"holdfast/engine/model"
)

// Leases count the sandboxes in use, and can end them all.
type Leases struct {
	closing context.Context
	cancel  context.CancelFunc

	mu     sync.Mutex
	held   int
	suites map[tokenHash]*suite // of held sandboxes
	shared *shared              // nil if no client without a lease needs it
}

var errClosing = model.Errorf(model.CodeConflict, "the appliance is being stopped, and the database with it")

// NewLeases returns the leases of one appliance.
func NewLeases() *Leases {
	l := &Leases{suites: map[tokenHash]*suite{}}
	l.closing, l.cancel = context.WithCancel(context.Background())
	return l
}

// Close has every sandbox removed, as if its holder had released it, and prevents new leases.
func (l *Leases) Close() { l.cancel() }

// CloseIdle closes the leases if none is held, and reports whether it did.
func (l *Leases) CloseIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held > 0 {
		return false
	}
	l.cancel()
	return true
}

// Held returns the number of held leases.
func (l *Leases) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// enter begins a lease. It returns false after Close.
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
