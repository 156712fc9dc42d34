package server

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast/engine/model"
	"holdfast/internal/listen"
)

const (
	// writePatience is the maximum time for which a client may accept none of the sent data: a slow connection is
	// fine, a stalled one is not.
	writePatience = 5 * time.Minute
	// mostConnections bounds the connections of a listener. The bound is lower if the process may not open twice as
	// many files: half of them are reserved for the databases, backups and objects.
	mostConnections = 16_384
)

// Listen listens on a TCP address for untrusted clients. When the limit is reached, a new connection replaces one of
// the client with the most, as described at [guarded]. It rejects an empty address, which means every address to
// package net. The connections of a trusted proxy are those of many clients.
func Listen(address string, proxies []netip.Prefix) (net.Listener, error) {
	if address == "" {
		return nil, errors.New("the address is empty")
	}
	l, err := listen.TCP(address)
	if err != nil {
		return nil, err
	}
	g := guard(l, connections(), writePatience)
	g.limit.shared = func(a netip.Addr) bool { return a.IsLoopback() || trustedProxies{networks: proxies}.contain(a) }
	return g, nil
}

func connections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return mostConnections
	}
	return int(min(files.Cur/2, mostConnections))
}

// guarded is a listener that bounds the number of its connections and the time they may stall. A connection beyond
// the limit replaces another, so that no client can hold them all: connectionLimit.excess chooses it. If none can be
// replaced, the new connection waits.
type guarded struct {
	net.Listener
	patience time.Duration
	limit    *connectionLimit
	// freed has a value once a connection has ended, or has become closable.
	freed  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func guard(l net.Listener, most int, patience time.Duration) *guarded {
	return &guarded{
		Listener: l, patience: patience, limit: newConnectionLimit(most), freed: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// Accept implements net.Listener.
func (g *guarded) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &guardedConn{Conn: conn, listener: g}
		g.limit.add(c, model.ClientIP(conn.RemoteAddr().String()))
		admitted, err := g.makeRoom(c)
		if err != nil {
			c.Close()
			return nil, err
		}
		if admitted {
			return c, nil
		}
	}
}

// makeRoom closes another connection in favour of c if there are too many, or waits until one has ended. It returns
// false if it closed c itself.
func (g *guarded) makeRoom(c *guardedConn) (bool, error) {
	for {
		full, victim := g.limit.excess(c)
		switch {
		case !full:
			return true, nil
		case victim != nil:
			victim.Close()
			if victim == c {
				return false, nil
			}
		default:
			select {
			case <-g.freed:
			case <-g.closed:
				return false, net.ErrClosed
			}
		}
	}
}

// changed wakes Accept if it is waiting.
func (g *guarded) changed() {
	select {
	case g.freed <- struct{}{}:
	default:
	}
}

// Close implements net.Listener.
func (g *guarded) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// guardedConn closes the connection of a client that stops reading.
type guardedConn struct {
	net.Conn
	listener  *guarded
	placement // kept by the limit
	once      sync.Once
	// answering is set while a handler's response may be written; what is written otherwise is net/http's own.
	answering atomic.Bool
	// deadline is the handler's own for what it writes, nil for none.
	deadline atomic.Pointer[time.Time]
}

// SetWriteDeadline implements net.Conn.
func (c *guardedConn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		c.deadline.Store(nil)
	} else {
		c.deadline.Store(&t)
	}
	return c.Conn.SetWriteDeadline(t) // also of a write under way
}

// Write implements io.Writer. It explains the refusals of net/http.
func (c *guardedConn) Write(p []byte) (n int, err error) {
	if !c.answering.Load() {
		if refused := explainRefusal(p); refused != nil {
			_, err := c.send(refused)
			return len(p), err
		}
	}
	return c.send(p)
}

func (c *guardedConn) send(p []byte) (int, error) {
	n, err := c.untilStalled(func(n int64) (int64, error) {
		m, err := c.Conn.Write(p[n:])
		return int64(m), err
	})
	return int(n), err
}

// ReadFrom implements io.ReaderFrom: the kernel sends what is in a part of a file. src must be nothing else, or it is copied.
func (c *guardedConn) ReadFrom(src io.Reader) (int64, error) {
	part, _ := src.(*io.LimitedReader)
	if part == nil {
		return io.Copy(struct{ io.Writer }{c}, src)
	}
	file, ok := part.R.(*os.File)
	if !ok {
		return io.Copy(struct{ io.Writer }{c}, src)
	}
	start, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	size := part.N
	return c.untilStalled(func(n int64) (int64, error) {
		if _, err := file.Seek(start+n, io.SeekStart); err != nil { // what was read last need not have been sent
			return 0, err
		}
		part.N = size - n
		return c.Conn.(*net.TCPConn).ReadFrom(part)
	})
}

// untilStalled calls send, which sends what comes after the first n bytes, until it has sent everything, or nothing in the time
// that the client has to accept something.
func (c *guardedConn) untilStalled(send func(n int64) (int64, error)) (n int64, err error) {
	for {
		stalled := time.Now().Add(c.listener.patience)
		own := c.deadline.Load()
		if own != nil && own.Before(stalled) {
			stalled = *own
		}
		if err := c.Conn.SetWriteDeadline(stalled); err != nil {
			return n, err
		}
		m, err := send(n)
		n += m
		if m == 0 || own != nil || !errors.Is(err, os.ErrDeadlineExceeded) { // otherwise the client accepted something before the deadline
			return n, err
		}
	}
}

// CloseWrite lets net/http finish its responses before it closes the connection, so that a client can read a
// response that was sent before its request had ended.
func (c *guardedConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// Close implements net.Conn.
func (c *guardedConn) Close() error {
	c.once.Do(func() {
		c.listener.limit.remove(c)
		c.listener.changed()
	})
	return c.Conn.Close()
}
