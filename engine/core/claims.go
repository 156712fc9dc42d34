package core

import (
	"context"
	"sync"
	"time"

	"holdfast/engine/model"
)

// Claims records which databases are being changed. Only one operation at a time may
// change a database. Claims are in memory because only one process has the data
// directory open.
type Claims struct {
	mu   sync.Mutex
	held map[string]*claim // by id
}

// claim is one operation's hold on an id.
type claim struct {
	what     string // being done
	ending   bool   // soon over: brief, or only its cleanup remains; others wait for it
	released chan struct{}
}

func NewClaims() *Claims { return &Claims{held: map[string]*claim{}} }

// endingWait is how long an operation waits for one that is brief or recorded as done.
const endingWait = 10 * time.Second

// Take claims id for what is about to be done ("a restore"), or returns a conflict
// that names the operation in progress. The caller releases the claim. Take waits
// for the cleanup of an operation that is done, because a client that was told of
// its end may continue at once, and for what was claimed with TakeBriefly.
func (c *Claims) Take(id, what string) (release func(), err error) {
	return c.TakeAnd(id, what, false, func() {})
}

// TakeAnd is Take, but calls taken before the claim is visible to others. If it is brief, others wait for it.
func (c *Claims) TakeAnd(id, what string, brief bool, taken func()) (release func(), err error) {
	timeout := time.NewTimer(endingWait)
	defer timeout.Stop()
	for {
		mine, other := c.put(id, claim{what: what, ending: brief}, taken)
		if other == nil {
			return sync.OnceFunc(func() { c.remove(id, mine) }), nil
		}
		if other.ending {
			select {
			case <-other.released:
				continue
			case <-timeout.C:
			}
		}
		return nil, underWay(other.what)
	}
}

// TakeBriefly is Take for what the appliance does of its own accord and is soon over:
// it waits for nobody, and other operations wait for it.
func (c *Claims) TakeBriefly(id, what string) (release func(), err error) {
	mine, other := c.put(id, claim{what: what, ending: true}, func() {})
	if other != nil {
		return nil, underWay(other.what)
	}
	return sync.OnceFunc(func() { c.remove(id, mine) }), nil
}

// TakeAfter is Take, but waits for as long as ctx lasts until an operation that holds id
// has ended.
func (c *Claims) TakeAfter(ctx context.Context, id, what string) (release func(), err error) {
	for {
		mine, other := c.put(id, claim{what: what}, func() {})
		if other == nil {
			return sync.OnceFunc(func() { c.remove(id, mine) }), nil
		}
		select {
		case <-other.released:
		case <-ctx.Done():
			return nil, underWay(other.what)
		}
	}
}

// put claims id as next says, or returns a copy of the existing claim.
func (c *Claims) put(id string, next claim, taken func()) (mine, other *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.held[id]; held != nil {
		there := *held
		return nil, &there
	}
	mine, next.released = &next, make(chan struct{})
	c.held[id] = mine
	taken()
	return mine, nil
}

func (c *Claims) remove(id string, mine *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, id)
	close(mine.released)
}

// Ending marks the claims on ids as being recorded as done.
func (c *Claims) Ending(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if held := c.held[id]; held != nil {
			held.ending = true
		}
	}
}

// SameOperation reports whether two ids are claimed for the same operation.
func (c *Claims) SameOperation(one, other string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, b := c.held[one], c.held[other]
	return a != nil && b != nil && a.what == b.what
}

// Holds reports whether id is claimed for the operation what.
func (c *Claims) Holds(id, what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[id] != nil && c.held[id].what == what
}

// underWay returns the conflict with another operation that holds a claim.
func underWay(what string) error {
	if what == Unrecovered {
		return model.Errorf(model.CodeConflict, "what a crash interrupted on this database could not be finished when the appliance started, "+
			"so nothing can be done with it: the operator must remove the cause, which its status names, and restart the appliance")
	}
	return model.Errorf(model.CodeConflict, "%s is under way on this resource; try again when it is done", what)
}

// Unrecovered is held, until the appliance ends, on a database that could not be
// recovered: it is not started, and no operation may use it. Other databases are
// unaffected.
const Unrecovered = "what a crash interrupted, and could not be recovered when the appliance started,"

// Await waits for as long as ctx lasts until id is not claimed for the operation what, or for any if what is "".
func (c *Claims) Await(ctx context.Context, id, what string) {
	for {
		c.mu.Lock()
		held := c.held[id]
		c.mu.Unlock()
		if held == nil || what != "" && held.what != what {
			return
		}
		select {
		case <-held.released:
		case <-ctx.Done():
			return
		}
	}
}

// UnderWay lists the claims as "id: what".
func (c *Claims) UnderWay() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for id, held := range c.held {
		all = append(all, id+": "+held.what)
	}
	return all
}
