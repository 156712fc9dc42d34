package proxy

import (
	"net/netip"
	"slices"
	"time"
)

// Connections that have not asked for a session are counted by their networks. They cost a place, and strangers can make any
// number of them.

// network returns the address by which a client is counted: an IPv6 address stands for
// its /64.
func network(a netip.Addr) netip.Addr {
	if a.Is6() {
		prefix, _ := a.Prefix(64)
		return prefix.Addr()
	}
	return a
}

// beginOpening counts a connection that has not asked for a session. It reports false
// if there are too many. If there are too many in all, the oldest of the network that
// has most makes way, so that no others can keep a client out.
func (p *Proxy) beginOpening(c *client) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, most := network(c.from.Addr()), mostOpenOf
	if p.closed || time.Now().Before(p.blocked[from]) {
		return false
	}
	if !p.rules.Admits(c.from.Addr()) {
		from, most = netip.Addr{}, mostExcluded
	}
	if len(p.opening[from]) >= most {
		return false
	}
	if from.IsValid() {
		if p.pending >= mostOpening {
			oldest := p.busiest()[0]
			p.forget(oldest)
			oldest.conn.Close()
		}
		p.pending++
	}
	c.counted = from
	p.opening[from] = append(p.opening[from], c)
	return true
}

// busiest returns the connections of the admitted network that has most in opening. The caller holds mu.
func (p *Proxy) busiest() (most []*client) {
	for from, clients := range p.opening {
		if from.IsValid() && len(clients) > len(most) {
			most = clients
		}
	}
	return most
}

// forget ends the count of a connection that has not asked for a session. It reports
// false if that has ended before. The caller holds mu.
func (p *Proxy) forget(c *client) bool {
	of := p.opening[c.counted]
	at := slices.Index(of, c)
	if at < 0 {
		return false
	}
	p.opening[c.counted] = slices.Delete(of, at, at+1)
	if len(of) == 1 {
		delete(p.opening, c.counted)
	}
	if c.counted.IsValid() {
		p.pending--
	}
	return true
}

func (p *Proxy) endOpening(c *client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(c)
}
