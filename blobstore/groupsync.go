package blobstore

import "sync"

// group lets callers share a piece of work that answers for everything that
// was asked for before it began: a sync. Whoever comes while one runs waits for
// the next, and one next serves all who wait. No timer: alone, a caller is
// served at once. The zero value is not ready for use.
type group[T any] struct {
	running chan struct{} // full while work runs

	mu   sync.Mutex
	next *round[T] // the round that has not begun, if somebody waits for it
}

func newGroup[T any]() *group[T] { return &group[T]{running: make(chan struct{}, 1)} }

// round is one run of the work to come, and what those who wait for it ask.
type round[T any] struct {
	asked []T
	done  chan struct{}
	err   error // set before done is closed
}

// do returns when a work begun after the call, with what was asked by all who
// share it, has ended, with its error.
func (g *group[T]) do(work func([]T) error, asked ...T) error {
	r, leader := g.join(asked)
	if !leader {
		<-r.done
		return r.err
	}
	g.running <- struct{}{}
	g.begin()
	r.err = work(r.asked)
	<-g.running
	close(r.done)
	return r.err
}

// alone runs other work, between two rounds.
func (g *group[T]) alone(work func() error) error {
	g.running <- struct{}{}
	defer func() { <-g.running }()
	return work()
}

// join enters the next round; whoever opens it leads it.
func (g *group[T]) join(asked []T) (r *round[T], leader bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if leader = g.next == nil; leader {
		g.next = &round[T]{done: make(chan struct{})}
	}
	g.next.asked = append(g.next.asked, asked...)
	return g.next, leader
}

// begin closes the round to newcomers.
func (g *group[T]) begin() {
	g.mu.Lock()
	g.next = nil
	g.mu.Unlock()
}

// groupSync lets callers share syncs of one directory.
type groupSync struct {
	sync  func() error
	group *group[struct{}]
}

func newGroupSync(sync func() error) *groupSync {
	return &groupSync{sync: sync, group: newGroup[struct{}]()}
}

// Sync returns when a sync begun after the call has ended, with its error.
func (g *groupSync) Sync() error {
	return g.group.do(func([]struct{}) error { return g.sync() })
}
