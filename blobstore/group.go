package blobstore

import "sync"

// group lets concurrent callers share a piece of work that covers everything
// requested before it began: a sync. A caller that arrives while one runs waits
// for the next, which serves all that wait. There is no timer: a lone caller is
// served at once. The zero value is not ready for use.
type group[T any] struct {
	running chan struct{} // full while work runs

	mu   sync.Mutex
	next *round[T] // the round that has not begun; nil if no caller waits for it
}

func newGroup[T any]() *group[T] { return &group[T]{running: make(chan struct{}, 1)} }

// round is one run of the work, with the requests it serves.
type round[T any] struct {
	asked []T
	done  chan struct{}
	err   error // set before done is closed
}

// do returns the error of a run of work that began after the call and got the
// requests of all callers that share it.
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

// join enters the next round. The first caller leads it.
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
