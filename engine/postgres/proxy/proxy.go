// Package proxy holds the port of a database whose server is stopped while nobody
// uses it. PostgreSQL cannot take over a listening socket, so the proxy keeps the
// port, starts the server when a client connects, and copies bytes in both directions.
//
// TLS passes through unchanged, so clients verify the server's own certificate and can
// bind their login to it. The server sees the proxy as its client. Therefore the proxy
// enforces what pg_hba.conf would: the allow-list, and TLS for clients that are not on
// this machine.
//
// A client that the rules exclude never starts the server, and neither does one that
// only connects: it must ask for a session or begin a TLS handshake.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"holdfast/internal/listen"
)

// Rules say who may connect, like [postgres.HBA].
type Rules struct {
	Database string
	Users    []string
	Creators []string // those of Users who may also log in to other databases
	Refused  []string // the databases that they may not either, PostgreSQL's templates
	Allow    []netip.Prefix
}

// admitsLogin reports whether the rules let a user log in to a database.
func (r Rules) admitsLogin(user, database string) bool {
	if database == r.Database {
		return slices.Contains(r.Users, user)
	}
	return slices.Contains(r.Creators, user) && !slices.Contains(r.Refused, database)
}

// Admits reports whether the rules let a client's address in.
func (r Rules) Admits(client netip.Addr) bool {
	return slices.ContainsFunc(r.Allow, func(p netip.Prefix) bool {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		return p.Contains(client)
	})
}

// Options are fixed when a proxy is opened, except Rules.
type Options struct {
	Listen []string // addresses, "*" is every address
	Port   int
	Rules  Rules
	// Wake starts the server if it does not run, and returns the address on which it
	// listens.
	Wake func(ctx context.Context) (address string, err error)
	// Running returns the address of the server if it runs.
	Running func() (address string, ok bool)
	// Directory contains the server's certificate and key.
	Directory func() string
	Changed   time.Time // when the data was last changed, as far as is known; zero = now
	Log       *slog.Logger
}

// Usage says whether the server is used.
type Usage struct {
	Clients int
	Idle    bool      // neither clients nor the appliance use it
	Last    time.Time // when either last did
	Changed time.Time // when somebody was last connected who may have changed data
}

// The limits of connections that have not yet been passed to the server, and of those
// that have.
const (
	// openingTime is how long a client may take to ask for a session, as long as the
	// server gives it to log in.
	openingTime = 5 * time.Second
	mostOpening = 256
	mostOpenOf  = 128 // from one address, or one /64 of IPv6
	// mostExcluded is how many there may be, besides, of addresses that the rules exclude: enough for these to be told so.
	mostExcluded = 16
	mostClients  = 2000
	// blockTime is how long an address is refused whose logins held all of the
	// server's connection slots.
	blockTime = 12 * time.Second
)

// Proxy listens on a port. Close ends it.
type Proxy struct {
	o         Options
	listeners []net.Listener
	life      context.Context
	end       context.CancelFunc
	work      sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	rules   Rules
	opening map[netip.Addr][]*client // those that have not asked for a session, by network, the oldest first; those that the rules exclude are under the zero address
	pending int                      // how many there are in opening, without the excluded
	clients map[*client]bool         // those that have
	blocked map[netip.Addr]time.Time
	holds   int // uses by the appliance
	usage   Usage
}

// Open listens on the port. The error wraps [syscall.EADDRINUSE] if another program
// uses it.
func Open(o Options) (*Proxy, error) {
	if o.Changed.IsZero() {
		o.Changed = time.Now()
	}
	p := &Proxy{
		o: o, rules: o.Rules, usage: Usage{Last: time.Now(), Changed: o.Changed},
		opening: map[netip.Addr][]*client{}, clients: map[*client]bool{}, blocked: map[netip.Addr]time.Time{},
	}
	for _, host := range o.Listen {
		if host == "*" {
			host = ""
		}
		l, err := listen.TCP(net.JoinHostPort(host, strconv.Itoa(o.Port)))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for clients: %w", err), p.closeListeners())
		}
		p.listeners = append(p.listeners, l)
	}
	p.life, p.end = context.WithCancel(context.Background())
	for _, l := range p.listeners {
		p.work.Go(func() { p.accept(l) })
	}
	return p, nil
}

func (p *Proxy) closeListeners() (err error) {
	for _, l := range p.listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// Close frees the port, ends all connections and waits for them. Calling it twice is
// fine.
func (p *Proxy) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.work.Wait()
		return nil
	}
	p.closed = true
	for c := range p.clients {
		c.close()
	}
	p.mu.Unlock()
	p.end()
	err := p.closeListeners()
	p.work.Wait()
	return err
}

func (p *Proxy) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptor is free
			select {
			case <-time.After(50 * time.Millisecond):
				continue
			case <-p.life.Done():
				return
			}
		}
		tcp, ok := conn.(*net.TCPConn)
		from, known := conn.RemoteAddr().(*net.TCPAddr)
		if !ok || !known {
			conn.Close()
			continue
		}
		address := from.AddrPort()
		c := &client{conn: tcp, from: netip.AddrPortFrom(address.Addr().Unmap().WithZone(""), address.Port())}
		if !p.beginOpening(c) {
			conn.Close()
			continue
		}
		p.work.Go(func() { p.serve(c) })
	}
}

// admit registers a client that asked for a session. It reports false if the rules
// exclude it, which may have changed since it connected, or if it had to make way.
func (p *Proxy) admit(c *client) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.clients) >= mostClients || !p.rules.Admits(c.from.Addr()) || !p.forget(c) {
		return false
	}
	p.clients[c] = true
	p.used(true)
	return true
}

func (p *Proxy) leave(c *client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.clients, c)
	p.used(true)
}

// used notes that the server is used. The caller holds mu.
func (p *Proxy) used(changes bool) {
	p.usage.Last = time.Now()
	if changes {
		p.usage.Changed = p.usage.Last
	}
}

// connected records a client's connection to the server. It reports false if the
// client has been excluded meanwhile.
func (p *Proxy) connected(c *client, server *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.excluded || p.closed {
		return false
	}
	c.server = server
	return true
}

// Rules returns the rules in force.
func (p *Proxy) Rules() Rules {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rules
}

// SetRules replaces the rules. When it returns, they are in force for new sessions.
func (p *Proxy) SetRules(r Rules) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = r
}

// Excluded returns the server's client ports of the connections that the rules exclude:
// the port is what the server shows of each. It ends those that have not reached the server yet. The others stay
// until the server ends their sessions.
func (p *Proxy) Excluded() (ports []int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.clients {
		if p.rules.Admits(c.from.Addr()) {
			continue
		}
		c.excluded = true
		if c.server == nil {
			c.conn.Close()
			continue
		}
		ports = append(ports, int32(portOf(c.server)))
	}
	return ports
}

// Address returns the client whose session the server knows by a port.
func (p *Proxy) Address(port int32) (netip.Addr, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.byPort(int(port))
	if c == nil {
		return netip.Addr{}, false
	}
	return c.from.Addr(), true
}

func (p *Proxy) byPort(port int) *client {
	for c := range p.clients {
		if c.server != nil && portOf(c.server) == port {
			return c
		}
	}
	return nil
}

// Block ends a connection, which the server knows by its port, and refuses its address
// for a while.
func (p *Proxy) Block(port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.byPort(port)
	if c == nil {
		return
	}
	now := time.Now()
	maps.DeleteFunc(p.blocked, func(_ netip.Addr, until time.Time) bool { return now.After(until) })
	p.blocked[network(c.from.Addr())] = now.Add(blockTime)
	c.close()
}

// Hold keeps the proxy in use until release is called. changes says whether the use may
// change data.
func (p *Proxy) Hold(changes bool) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds++
	p.used(changes)
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.holds--
		p.used(changes)
	})
}

// Usage returns whether the server is used.
func (p *Proxy) Usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	usage := p.usage
	usage.Clients = len(p.clients)
	usage.Idle = usage.Clients == 0 && p.holds == 0
	return usage
}

// client is a connection of a client. The proxy's mu guards counted, server and excluded.
type client struct {
	conn     *net.TCPConn
	from     netip.AddrPort
	counted  netip.Addr   // the network under which it is in opening
	server   *net.TCPConn // nil until it is connected
	excluded bool
}

func (c *client) close() {
	c.conn.Close()
	if c.server != nil {
		c.server.Close()
	}
}

func portOf(conn net.Conn) int {
	address, _ := conn.LocalAddr().(*net.TCPAddr)
	return address.Port
}
