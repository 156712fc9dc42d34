package blobstore

import "sync"

// groupSync lets callers share syncs of one directory. A sync answers for every
// change made before it began; so whoever comes while one runs waits for the
// next, and one next serves all who wait. No timer: alone, a caller syncs at
// once.
type groupSync struct {
	sync    func() error
	running chan struct{} // full while sync runs

	mu   sync.Mutex
	next *syncRound // the round that has not begun, if somebody waits for it
}

func newGroupSync(sync func() error) *groupSync {
	return &groupSync{sync: sync, running: make(chan struct{}, 1)}
}

// syncRound is one sync to come and those who wait for it.
type syncRound struct {
	done chan struct{}
	err  error // set before done is closed
}

// Sync returns when a sync begun after the call has ended, with its error.
func (g *groupSync) Sync() error {
	round, leader := g.join()
	if !leader {
		<-round.done
		return round.err
	}
	g.running <- struct{}{}
	g.begin()
	round.err = g.sync()
	<-g.running
	close(round.done)
	return round.err
}

// join enters the next round; whoever opens it leads it.
func (g *groupSync) join() (round *syncRound, leader bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next != nil {
		return g.next, false
	}
	g.next = &syncRound{done: make(chan struct{})}
	return g.next, true
}

// begin closes the round to newcomers.
func (g *groupSync) begin() {
	g.mu.Lock()
	g.next = nil
	g.mu.Unlock()
}
