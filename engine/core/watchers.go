package core

import (
	"cmp"
	"sync"
	"time"

	"holdfast/engine/model"
)

// The limits on requests that wait for something to happen: of each key or person, of
// each address, and in all.
const (
	WatchersPerActor   = 16
	WatchersPerVisitor = 64
	WatchersInAll      = 512
)

// Watchers counts the requests that wait for something to happen, each of which holds a
// connection.
type Watchers struct {
	mu    sync.Mutex
	count map[string]int
	all   int
}

// Watch admits a call that waits. The caller calls release when it no longer waits.
func (w *Watchers) Watch(call *model.Call) (release func(), err error) {
	actor, visitor := "actor "+cmp.Or(call.Actor.ID, string(call.Actor.Type)), "visitor "+model.VisitorOf(call.IP)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= WatchersInAll || w.count[actor] >= WatchersPerActor || w.count[visitor] >= WatchersPerVisitor {
		return nil, &model.Error{
			Code: model.CodeRateLimited, RetryAfter: time.Second,
			Message: "too many requests wait already: let some of them end, or ask without waiting",
		}
	}
	if w.count == nil {
		w.count = map[string]int{}
	}
	w.add(1, actor, visitor)
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.add(-1, actor, visitor)
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
