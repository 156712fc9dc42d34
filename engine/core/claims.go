package core

import (
	"sync"
	"time"

	"holdfast/engine/model"
)

// Claims says which databases something is being done to. One act at a time
// may change a database; the process holds the data directory alone, so
// memory is the right place for it.
type Claims struct {
	mu   sync.Mutex
	held map[string]*claim // by id
}

// claim is one act that holds an id.
type claim struct {
	what     string // is being done
	ending   bool   // it is recorded as done, or about to be, and only tidies up
	released chan struct{}
}

func NewClaims() *Claims { return &Claims{held: map[string]*claim{}} }

// endingWait is how long an act waits for one that is recorded as done.
const endingWait = 10 * time.Second

// Take claims id for what is about to be done ("a restore"), or returns a
// conflict that names what is under way. The caller releases it. Whoever was
// told that an act is done may go on at once: its tidying up is waited for.
func (c *Claims) Take(id, what string) (release func(), err error) {
	return c.TakeAnd(id, what, func() {})
}

// TakeAnd is take, and calls taken before anybody can see the claim.
func (c *Claims) TakeAnd(id, what string, taken func()) (release func(), err error) {
	timeout := time.NewTimer(endingWait)
	defer timeout.Stop()
	for {
		mine, other := c.put(id, what, taken)
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

// put claims id, or returns a copy of the claim that is there.
func (c *Claims) put(id, what string, taken func()) (mine, other *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.held[id]; held != nil {
		there := *held
		return nil, &there
	}
	mine = &claim{what: what, released: make(chan struct{})}
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

// Ending says that what these are claimed for is being recorded as done.
func (c *Claims) Ending(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if held := c.held[id]; held != nil {
			held.ending = true
		}
	}
}

// SameAct reports whether two are claimed for the same.
func (c *Claims) SameAct(one, other string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, b := c.held[one], c.held[other]
	return a != nil && b != nil && a.what == b.what
}

// Holds reports whether id is claimed for what is given.
func (c *Claims) Holds(id, what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[id] != nil && c.held[id].what == what
}

// underWay is the conflict with another act that holds a claim.
func underWay(what string) error {
	if what == Unrecovered {
		return model.Errorf(model.CodeConflict, "what a crash interrupted on this database could not be finished when the appliance started, "+
			"so nothing can be done with it: the operator must remove the cause, which its status names, and restart the appliance")
	}
	return model.Errorf(model.CodeConflict, "%s is under way on this resource; try again when it is done", what)
}

// Unrecovered is held, until the appliance ends, on a database that could not be
// recovered: nothing may touch it, and it is not started. The others are.
const Unrecovered = "what a crash interrupted, and could not be recovered when the appliance started,"

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
