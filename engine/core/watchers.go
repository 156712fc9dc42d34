package core

import (
	"cmp"
	"sync"
	"time"

	"holdfast/engine/model"
)

// The limits on requests that wait for something to happen: of each key or person, of
// each address, of each organization, and in all.
const (
	WatchersPerActor        = 16
	WatchersPerVisitor      = 64
	WatchersPerOrganization = 128
	WatchersInAll           = 512
)

// Watchers counts the requests that wait for something to happen, each of which holds a
// connection.
type Watchers struct {
	mu    sync.Mutex
	count map[string]int
	all   int
	ended chan struct{} // nil until somebody asks for it
	over  bool
}

// Watch admits a call that waits. The caller calls release when it no longer waits.
func (w *Watchers) Watch(call *model.Call) (release func(), err error) {
	actor, visitor := "actor "+cmp.Or(call.Actor.ID, string(call.Actor.Type)), "visitor "+model.VisitorOf(call.IP)
	organization := "organization " + call.Organization
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= WatchersInAll || w.count[actor] >= WatchersPerActor || w.count[visitor] >= WatchersPerVisitor || w.count[organization] >= WatchersPerOrganization {
		return nil, &model.Error{
			Code: model.CodeRateLimited, RetryAfter: time.Second,
			Message: "too many requests wait already: let some of them end, or ask without waiting",
		}
	}
	if w.count == nil {
		w.count = map[string]int{}
	}
	w.add(1, actor, visitor, organization)
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.add(-1, actor, visitor, organization)
	}), nil
}

func (w *Watchers) add(n int, of ...string) {
	w.all += n
	for _, key := range of {
		if w.count[key] += n; w.count[key] == 0 {
			delete(w.count, key)
		}
	}
}

// Ended returns a channel that End closes.
func (w *Watchers) Ended() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end()
}

// End has every request that waits answered, because the appliance is about to stop.
// End is idempotent.
func (w *Watchers) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.over = true
		close(w.end())
	}
}

func (w *Watchers) end() chan struct{} {
	if w.ended == nil {
		w.ended = make(chan struct{})
	}
	return w.ended
}
