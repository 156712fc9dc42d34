package server

import (
	"errors"
	"io"
	"math"
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
	// where the process may not have twice as many files open: whoever connects
	// leaves half of them to the databases, backups and objects.
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
		c := &guardedConn{TCPConn: conn.(*net.TCPConn), listener: g}
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

// guardedConn gives up on a client that does not take what it is sent. It is
// a TCP connection in all else: files are sent by the kernel.
type guardedConn struct {
	*net.TCPConn
	listener  *guarded
	placement // kept by the limit
	once      sync.Once
}

// Write implements io.Writer.
func (c *guardedConn) Write(p []byte) (n int, err error) {
	for {
		if err := c.wait(); err != nil {
			return n, err
		}
		m, err := c.TCPConn.Write(p[n:])
		n += m
		if !slow(int64(m), err) {
			return n, err
		}
	}
}

// ReadFrom implements io.ReaderFrom.
func (c *guardedConn) ReadFrom(r io.Reader) (n int64, err error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		limited = &io.LimitedReader{R: r, N: math.MaxInt64}
	}
	for {
		if err := c.wait(); err != nil {
			return n, err
		}
		left := limited.N
		m, err := c.TCPConn.ReadFrom(limited)
		n += m
		if !slow(m, err) || left-limited.N != m { // what was read and not sent is lost
			return n, err
		}
	}
}

// slow reports whether a client has taken something before its time was up.
func slow(sent int64, err error) bool { return sent > 0 && errors.Is(err, os.ErrDeadlineExceeded) }

func (c *guardedConn) wait() error {
	return c.SetWriteDeadline(time.Now().Add(c.listener.patience))
}

// Close implements net.Conn.
func (c *guardedConn) Close() error {
	c.once.Do(func() {
		c.listener.limit.remove(c)
		c.listener.changed()
	})
	return c.TCPConn.Close()
}
