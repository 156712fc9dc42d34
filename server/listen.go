package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"holdfast/engine/model"
)

const (
	// writePatience is how long a client may accept nothing of what is sent: a
	// slow line is fine, one that takes nothing is not.
	writePatience = 5 * time.Minute
	// mostConnections bounds the connections of a listener. There are fewer
	// where the process may not have twice as many files open: half of them are
	// left to the databases, backups and objects.
	mostConnections = 16_384
)

// Listen listens on a TCP address for untrusted clients. When it is full, a new
// connection replaces one of the client with the most, as [guarded] says. An
// empty address is refused: to the net package it means every address.
func Listen(address string) (net.Listener, error) {
	if address == "" {
		return nil, errors.New("the address is empty")
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return guard(l, connections(), writePatience), nil
}

func connections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return mostConnections
	}
	return int(min(files.Cur/2, mostConnections))
}

// guarded is a listener that bounds the number of its connections and the time
// they may stand still. A connection beyond the limit replaces another, so that
// no client can hold them all: see connectionLimit.excess for which. If none can be
// replaced, it waits.
type guarded struct {
	net.Listener
	patience time.Duration
	limit    *connectionLimit
	// freed has a value once a connection has gone, or can be closed now.
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

// makeRoom closes another connection in favour of c when there are too many, or
// waits until one has ended. It reports false when c itself is the one.
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

// changed wakes Accept if it waits.
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

// guardedConn gives up on a client that does not take what it is sent.
type guardedConn struct {
	net.Conn
	listener  *guarded
	placement // kept by the limit
	once      sync.Once
}

// Write implements io.Writer.
func (c *guardedConn) Write(p []byte) (n int, err error) {
	for {
		if err := c.SetWriteDeadline(time.Now().Add(c.listener.patience)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(p[n:])
		n += m
		if m == 0 || !errors.Is(err, os.ErrDeadlineExceeded) { // else it has taken something before its time was up
			return n, err
		}
	}
}

// CloseWrite lets net/http end its answers before it closes the connection, so
// that a client gets to read one that came before its request had ended.
func (c *guardedConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// Close implements net.Conn.
func (c *guardedConn) Close() error {
	c.once.Do(func() {
		c.listener.limit.remove(c)
		c.listener.changed()
	})
	return c.Conn.Close()
}
