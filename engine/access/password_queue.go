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
	// unknownHashes is how many of them unknown clients may have: the rest is
	// for people who have signed in before, from the same browser or address.
	unknownHashes = 3
	// unknownSignIns and knownSignIns are how many sign-ins may be under way, hashed or
	// waiting; the queue refuses more at once.
	unknownSignIns = 32
	knownSignIns   = 64
	// signInsPerClient is how many of these one client may have. An unknown client at the
	// machine's own address may have more, as a proxy's clients share it.
	signInsPerClient = 2
)

// passwordQueue bounds the sign-ins that are under way: in total, and of each
// client.
type passwordQueue struct {
	most  int
	slots []chan struct{} // a hash takes one slot of each, in this order

	mu    sync.Mutex
	total int
	of    map[string]int
}

func newPasswordQueue(most int, slots ...chan struct{}) *passwordQueue {
	return &passwordQueue{most: most, slots: slots, of: map[string]int{}}
}

// enter lets one sign-in of the client begin, or refuses it at once: ofOne is how
// many this client may have under way. The caller calls leave when it ends.
func (q *passwordQueue) enter(client string, ofOne int) (leave func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.total >= q.most || q.of[client] >= ofOne {
		return nil, &model.Error{
			Code: model.CodeRateLimited, RetryAfter: 2 * time.Second,
			Message: "too many people are signing in at the moment; try again in a few seconds",
		}
	}
	q.total++
	q.of[client]++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.total--
		if q.of[client]--; q.of[client] == 0 {
			delete(q.of, client)
		}
	}, nil
}

// hashing does work once there is a slot for it.
func (q *passwordQueue) hashing(work func()) {
	for _, slots := range q.slots {
		slots <- struct{}{}
		defer func() { <-slots }()
	}
	work()
}
