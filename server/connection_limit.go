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

// connectionLimit bounds the connections of a listener. It groups them by client address, with an IPv6 /64 as one,
// and chooses the connection to close when there are too many.
type connectionLimit struct {
	most int
	// shared reports whether many clients share an address. The machine's own address is shared: a proxy connects
	// from there.
	shared func(netip.Addr) bool

	mu      sync.Mutex
	total   int
	clients map[string]*clientConns
}

// clientConns are the connections of one address.
type clientConns struct {
	shared bool
	total  int
	// by has the connections of each kind, oldest first.
	by [kinds]list.List
}

// kind is the activity of a connection and the trust in its client. Connections of a lower kind are closed first.
type kind int

const (
	idle kind = 0 // no request is in progress, and none had a valid key or session

	fromKnownClient kind = 1 << 0 // a request had a valid key or session
	busy            kind = 1 << 1 // a request is in progress

	kinds = (fromKnownClient | busy) + 1
)

// placement is the position of a connection in the limit.
type placement struct {
	client  *clientConns
	name    string
	kind    kind
	element *list.Element
}

func newConnectionLimit(most int) *connectionLimit {
	return &connectionLimit{most: most, shared: netip.Addr.IsLoopback, clients: map[string]*clientConns{}}
}

// add counts a connection from an address.
func (l *connectionLimit) add(c *guardedConn, ip string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.name = model.VisitorOf(ip)
	c.client = l.clients[c.name]
	if c.client == nil {
		address, err := netip.ParseAddr(ip)
		c.client = &clientConns{shared: err == nil && l.shared(address.Unmap())}
		l.clients[c.name] = c.client
	}
	l.total++
	c.client.total++
	c.element = c.client.by[c.kind].PushBack(c)
}

// remove removes a connection.
func (l *connectionLimit) remove(c *guardedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.client.by[c.kind].Remove(c.element)
	c.element = nil
	l.total--
	if c.client.total--; c.client.total == 0 {
		delete(l.clients, c.name)
	}
}

// excess reports whether there are too many connections including newcomer, and which one to close. The first choice
// is the client with the most connections, if it has more than a quarter of the limit and its address is not shared;
// then the client with the most connections among those that have one of a kind. Of one client's connections, those
// without a request are closed before those with one, those of unknown clients before those of known ones, and the
// oldest first. Requests of known clients are never cut off, nor are requests from a shared address: c is nil if no
// other connection is left.
func (l *connectionLimit) excess(newcomer *guardedConn) (full bool, c *guardedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total <= l.most {
		return false, nil
	}
	if heaviest := l.heaviest(func(c *clientConns) bool { return !c.shared }); heaviest != nil && heaviest.total > l.most/4 {
		for k := idle; k <= busy; k++ {
			if heaviest.closable(k, nil) {
				return true, heaviest.by[k].Front().Value.(*guardedConn)
			}
		}
	}
	for k := idle; k <= busy; k++ {
		if c := l.heaviest(func(c *clientConns) bool { return c.closable(k, newcomer) }); c != nil {
			return true, c.by[k].Front().Value.(*guardedConn)
		}
	}
	return true, nil
}

// heaviest returns the client with the most connections among those that match, or nil.
func (l *connectionLimit) heaviest(match func(*clientConns) bool) (heaviest *clientConns) {
	for _, c := range l.clients {
		if match(c) && (heaviest == nil || c.total > heaviest.total) {
			heaviest = c
		}
	}
	return heaviest
}

// closable reports whether the client has a connection of the kind, other than newcomer, that may be closed.
func (c *clientConns) closable(k kind, newcomer *guardedConn) bool {
	first := c.by[k].Front()
	return first != nil && first.Value != newcomer && !(c.shared && k == busy)
}

// move changes the kind of a connection.
func (l *connectionLimit) move(c *guardedConn, to func(kind) kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := to(c.kind)
	if c.element == nil || next == c.kind {
		return
	}
	c.client.by[c.kind].Remove(c.element)
	c.kind = next
	c.element = c.client.by[next].PushBack(c)
}

// noteState is the http.Server's ConnState.
func noteState(conn net.Conn, state http.ConnState) {
	c := guardedUnder(conn)
	if c == nil {
		return
	}
	switch state {
	case http.StateActive:
		c.listener.limit.move(c, func(k kind) kind { return k | busy })
	case http.StateIdle:
		c.answering.Store(false)
		c.listener.limit.move(c, func(k kind) kind { return k &^ busy })
		c.listener.changed()
	}
}

// guardedUnder returns the connection of a guarded listener, also under TLS, or nil for any other connection.
func guardedUnder(conn net.Conn) *guardedConn {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, _ := conn.(*guardedConn)
	return c
}

type connKey struct{}

// withConn is the http.Server's ConnContext. It lets known find the connection.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if c := guardedUnder(conn); c != nil {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// known records that a request has identified its client by a key or a session.
func known(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*guardedConn); ok {
		c.listener.limit.move(c, func(k kind) kind { return k | fromKnownClient })
	}
}
