package engine

import (
	"sync"
	"time"

	"holdfast/engine/model"
)

// How many passwords are hashed at a time, and how many sign-ins wait for
// that. A hash takes tens of milliseconds and 19 MiB, so these bound both the
// memory and how long a sign-in takes.
const (
	parallelHashes = 4
	// strangerHashes is how many of them unknown clients may have: the rest is
	// for people who have signed in before, from the same browser or address.
	strangerHashes = 3
	// mostStrangers and mostAcquaintances are under way at a time, hashed or
	// waiting; more are turned away at once.
	mostStrangers     = 32
	mostAcquaintances = 64
	// mostOfOne is how many of these one visitor may have. An unknown client at the
	// machine's own address may have more, as a proxy's clients share it.
	mostOfOne = 2
)

// passwordQueue bounds the sign-ins that are under way: in total, and of each
// visitor.
type passwordQueue struct {
	most   int
	places []chan struct{} // a hash takes a place of each, in this order

	mu    sync.Mutex
	total int
	of    map[string]int
}

func newPasswordQueue(most int, places ...chan struct{}) *passwordQueue {
	return &passwordQueue{most: most, places: places, of: map[string]int{}}
}

// enter lets one sign-in of the visitor named who begin, or refuses it at once.
// The caller calls leave when it ends.
func (q *passwordQueue) enter(who string, ofOne int) (leave func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.total >= q.most || q.of[who] >= ofOne {
		return nil, &model.Error{
			Code: model.CodeRateLimited, RetryAfter: 2 * time.Second,
			Message: "too many people are signing in at the moment; try again in a few seconds",
		}
	}
	q.total++
	q.of[who]++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.total--
		if q.of[who]--; q.of[who] == 0 {
			delete(q.of, who)
		}
	}, nil
}

// hashing has work done when there is a place for it.
func (q *passwordQueue) hashing(work func()) {
	for _, places := range q.places {
		places <- struct{}{}
		defer func() { <-places }()
	}
	work()
}
