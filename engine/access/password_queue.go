package access

import (
	"sync"
	"time"

	"holdfast/engine/model"
)

// The number of passwords hashed at a time, and of sign-ins that wait for it. A hash
// takes tens of milliseconds and 19 MiB, so these limit both the memory and the duration
// of a sign-in.
const (
	parallelHashes = 4
	// unknownHashes is the share of unknown clients. The rest is for people who have
	// signed in before, from the same browser or address.
	unknownHashes = 3
	// unknownSignIns and knownSignIns limit the sign-ins in progress, hashing or waiting;
	// the queue refuses more immediately.
	unknownSignIns = 32
	knownSignIns   = 64
	// signInsPerClient limits those of one client. An unknown client at the loopback
	// address may have more, because a proxy's clients share it.
	signInsPerClient = 2
)

// passwordQueue limits the sign-ins in progress, in total and per client.
type passwordQueue struct {
	most  int
	slots []chan struct{} // a hash takes one slot of each, in order

	mu    sync.Mutex
	total int
	of    map[string]int
}

func newPasswordQueue(most int, slots ...chan struct{}) *passwordQueue {
	return &passwordQueue{most: most, slots: slots, of: map[string]int{}}
}

// enter admits one sign-in of the client, or refuses it immediately; ofOne is the limit
// for this client. The caller calls leave when the sign-in ends.
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

// hashing runs work once it has a slot.
func (q *passwordQueue) hashing(work func()) {
	for _, slots := range q.slots {
		slots <- struct{}{}
		defer func() { <-slots }()
	}
	work()
}
