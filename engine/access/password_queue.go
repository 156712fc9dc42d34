package access

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
	// StrangerHashes is how many of them unknown clients may have: the rest is
	// for people who have signed in before, from the same browser or address.
	StrangerHashes = 3
	// MostStrangers and mostAcquaintances are under way at a time, hashed or
	// waiting; more are turned away at once.
	MostStrangers     = 32
	mostAcquaintances = 64
	// MostOfOne is how many of these one visitor may have. An unknown client at the
	// machine's own address may have more, as a proxy's clients share it.
	MostOfOne = 2
)

// PasswordQueue bounds the sign-ins that are under way: in total, and of each
// visitor.
type PasswordQueue struct {
	most   int
	Places []chan struct{} // a hash takes a place of each, in this order

	Mu    sync.Mutex
	Total int
	of    map[string]int
}

func NewPasswordQueue(most int, places ...chan struct{}) *PasswordQueue {
	return &PasswordQueue{most: most, Places: places, of: map[string]int{}}
}

// Enter lets one sign-in of the visitor named who begin, or refuses it at once.
// The caller calls leave when it ends.
func (q *PasswordQueue) Enter(who string, ofOne int) (leave func(), err error) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.Total >= q.most || q.of[who] >= ofOne {
		return nil, &model.Error{
			Code: model.CodeRateLimited, RetryAfter: 2 * time.Second,
			Message: "too many people are signing in at the moment; try again in a few seconds",
		}
	}
	q.Total++
	q.of[who]++
	return func() {
		q.Mu.Lock()
		defer q.Mu.Unlock()
		q.Total--
		if q.of[who]--; q.of[who] == 0 {
			delete(q.of, who)
		}
	}, nil
}

// hashing has work done when there is a place for it.
func (q *PasswordQueue) hashing(work func()) {
	for _, places := range q.Places {
		places <- struct{}{}
		defer func() { <-places }()
	}
	work()
}
