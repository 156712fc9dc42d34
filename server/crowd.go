package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"holdfast/engine/model"
)

// crowd keeps the connections of a listener by caller, with an IPv6 /64 as one,
// and chooses the one to close when there are too many.
type crowd struct {
	most int
	// shared reports whether an address is that of many callers. The machine's
	// own is: a proxy connects from there.
	shared func(netip.Addr) bool

	mu      sync.Mutex
	total   int
	callers map[string]*caller
}

// caller is one address with its connections.
type caller struct {
	shared bool
	total  int
	// by has the connections of each kind, the longest of it first.
	by [kinds]list.List
}

// kind is what a connection is doing, and for whom. Those of a lower kind are
// closed first.
type kind int

const (
	waiting kind = 0 // no request is under way, and none has had a valid key or session

	fromKnown kind = 1 << 0 // a request has had a valid key or session
	busy      kind = 1 << 1 // a request is under way

	kinds = (fromKnown | busy) + 1
)

// standing is where a connection stands in the crowd.
type standing struct {
	caller  *caller
	name    string
	kind    kind
	element *list.Element
}

func newCrowd(most int) *crowd {
	return &crowd{most: most, shared: netip.Addr.IsLoopback, callers: map[string]*caller{}}
}

// enter counts a connection from an address.
func (w *crowd) enter(c *guardedConn, ip string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.name = model.VisitorOf(ip)
	c.caller = w.callers[c.name]
	if c.caller == nil {
		address, err := netip.ParseAddr(ip)
		c.caller = &caller{shared: err == nil && w.shared(address.Unmap())}
		w.callers[c.name] = c.caller
	}
	w.total++
	c.caller.total++
	c.element = c.caller.by[c.kind].PushBack(c)
}

// leave counts it no more.
func (w *crowd) leave(c *guardedConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.caller.by[c.kind].Remove(c.element)
	c.element = nil
	w.total--
	if c.caller.total--; c.caller.total == 0 {
		delete(w.callers, c.name)
	}
}

// yielding reports whether there are too many connections since newcomer came,
// and which gives way. A caller that has more than a quarter of what there may
// be, and no shared address, gives way before others; then the one that has the most of a kind. Of one
// caller's, a connection that waits for a request gives way before one that has
// one, one that has not shown who it is from before one that has, and the
// longest first. Requests of somebody who is known are never cut off, and no
// request of a caller whose address is shared: nil is returned when nothing
// else is left.
func (w *crowd) yielding(newcomer *guardedConn) (full bool, c *guardedConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.total <= w.most {
		return false, nil
	}
	if heaviest := w.heaviest(func(c *caller) bool { return !c.shared }); heaviest != nil && heaviest.total > w.most/4 {
		for k := waiting; k <= busy; k++ {
			if heaviest.yields(k, nil) {
				return true, heaviest.by[k].Front().Value.(*guardedConn)
			}
		}
	}
	for k := waiting; k <= busy; k++ {
		if c := w.heaviest(func(c *caller) bool { return c.yields(k, newcomer) }); c != nil {
			return true, c.by[k].Front().Value.(*guardedConn)
		}
	}
	return true, nil
}

// heaviest returns the caller with the most connections of those that are
// asked for, nil for none.
func (w *crowd) heaviest(asked func(*caller) bool) (heaviest *caller) {
	for _, c := range w.callers {
		if asked(c) && (heaviest == nil || c.total > heaviest.total) {
			heaviest = c
		}
	}
	return heaviest
}

// yields reports whether the caller has a connection of the kind, other than
// the newcomer, that may be cut.
func (c *caller) yields(k kind, newcomer *guardedConn) bool {
	first := c.by[k].Front()
	return first != nil && first.Value != newcomer && !(c.shared && k == busy)
}

// move notes that a connection became of another kind.
func (w *crowd) move(c *guardedConn, to func(kind) kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := to(c.kind)
	if c.element == nil || next == c.kind {
		return
	}
	c.caller.by[c.kind].Remove(c.element)
	c.kind = next
	c.element = c.caller.by[next].PushBack(c)
}

// noteState is the http.Server's ConnState.
func noteState(conn net.Conn, state http.ConnState) {
	c := guardedUnder(conn)
	if c == nil {
		return
	}
	switch state {
	case http.StateActive:
		c.listener.crowd.move(c, func(k kind) kind { return k | busy })
	case http.StateIdle:
		c.listener.crowd.move(c, func(k kind) kind { return k &^ busy })
		c.listener.changed()
	}
}

// guardedUnder returns the connection of a guarded listener, also under TLS,
// nil where it is another's.
func guardedUnder(conn net.Conn) *guardedConn {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, _ := conn.(*guardedConn)
	return c
}

type connKey struct{}

// withConn is the http.Server's ConnContext: it lets known find the
// connection.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if c := guardedUnder(conn); c != nil {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// known notes that a request has shown who it is from, by a key or a session.
func known(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*guardedConn); ok {
		c.listener.crowd.move(c, func(k kind) kind { return k | fromKnown })
	}
}
