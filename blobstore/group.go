package blobstore

import "sync"

// group lets concurrent callers share one run of some work, such as a sync, that covers everything requested before
// it began. A caller that arrives during a run waits for the next, which serves all waiting callers. There is no
// timer: a lone caller is served immediately. Use newGroup; the zero value is not ready for use.
type group[T any] struct {
	running chan struct{} // full during a run

	mu   sync.Mutex
	next *round[T] // the round that has not begun; nil if no caller is waiting
}

func newGroup[T any]() *group[T] { return &group[T]{running: make(chan struct{}, 1)} }

// round is one run of the work and the requests that it serves.
type round[T any] struct {
	asked []T
	done  chan struct{}
	err   error // set before done is closed
}

// do waits for a run of work that begins after the call, and returns its error. The run receives the requests of all
// callers that share it.
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

// alone runs other work between two rounds.
func (g *group[T]) alone(work func() error) error {
	g.running <- struct{}{}
	defer func() { <-g.running }()
	return work()
}

// join joins the next round. The first caller leads it.
func (g *group[T]) join(asked []T) (r *round[T], leader bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if leader = g.next == nil; leader {
		g.next = &round[T]{done: make(chan struct{})}
	}
	g.next.asked = append(g.next.asked, asked...)
	return g.next, leader
}

// begin closes the round to further callers.
func (g *group[T]) begin() {
	g.mu.Lock()
	g.next = nil
	g.mu.Unlock()
}
