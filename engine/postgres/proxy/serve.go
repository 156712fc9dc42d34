package proxy

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"time"

	"holdfast/engine/certificates"
)

// serve attends to one client until it is gone.
func (p *Proxy) serve(c *client) {
	defer c.conn.Close()
	stop := context.AfterFunc(p.life, func() { c.conn.Close() })
	defer stop()
	o, admitted := p.open(c)
	if !admitted {
		return
	}
	defer p.leave(c)
	if err := p.forward(c, o); err != nil {
		p.o.Log.Debug("a client could not be connected to its server", "client", c.from, "error", err)
		p.refuse(c, o, refusal{cannotConnectNow, "the database could not be started for this connection; its status in the appliance says why"})
	}
}

// open reads what a client asks for, and admits it to the server if the rules allow it.
func (p *Proxy) open(c *client) (o opening, admitted bool) {
	defer p.endOpening(c)
	_ = c.conn.SetDeadline(time.Now().Add(openingTime))
	o, err := readOpening(c.conn)
	if err != nil {
		return o, false
	}
	if o.cancel {
		p.cancel(c, o)
		return o, false
	}
	rules := p.Rules()
	named := o.encrypted || rules.admitsLogin(o.user, o.database)
	local := c.from.Addr().IsLoopback()
	if !named || !o.encrypted && !local || !p.admit(c) {
		p.refuse(c, o, noEntry(c, o))
		return o, false
	}
	_ = c.conn.SetDeadline(time.Time{})
	return o, true
}

// cancel passes on a request to cancel a statement, if the server runs. The server
// closes the connection when it has sent the signal.
func (p *Proxy) cancel(c *client, o opening) {
	address, running := p.o.Running()
	if !running || !p.Rules().Admits(c.from.Addr()) {
		return
	}
	server, err := net.DialTimeout("tcp", address, openingTime)
	if err != nil {
		return
	}
	defer server.Close()
	_ = server.SetDeadline(time.Now().Add(openingTime))
	if _, err := server.Write(o.first); err == nil {
		_, _ = io.Copy(io.Discard, server)
	}
}

// errNoTLS means that a server has no certificate.
var errNoTLS = errors.New("the server does not support TLS")

// forward connects a client to the server and copies bytes until one of them is gone.
// An error means that the client has been sent nothing.
func (p *Proxy) forward(c *client, o opening) error {
	address, err := p.o.Wake(p.life)
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	dialer := net.Dialer{Timeout: openingTime}
	conn, err := dialer.DialContext(p.life, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	server := conn.(*net.TCPConn)
	defer server.Close()
	if !p.connected(c, server) {
		return nil // excluded meanwhile: its connection is closed
	}
	if o.negotiate {
		if err := negotiate(server); err != nil {
			return err
		}
	}
	if _, err := server.Write(o.first); err != nil {
		return fmt.Errorf("write to the server: %w", err)
	}
	exchange(c.conn, server)
	return nil
}

// negotiate asks the server for TLS.
func negotiate(server net.Conn) error {
	request := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, headerSize), sslRequest)
	if _, err := server.Write(request); err != nil {
		return fmt.Errorf("ask the server for TLS: %w", err)
	}
	_ = server.SetReadDeadline(time.Now().Add(openingTime))
	answer := make([]byte, 1)
	if _, err := io.ReadFull(server, answer); err != nil {
		return fmt.Errorf("ask the server for TLS: %w", err)
	}
	if answer[0] != 'S' {
		return errNoTLS
	}
	return server.SetReadDeadline(time.Time{})
}

// bufferSize is the size of one direction's buffer: two for each session, while it is
// idle, too.
const bufferSize = 16 << 10

// exchange copies in both directions. When the client closes its side, the server is
// told so and may still answer; when the server is done, both are closed.
func exchange(client, server *net.TCPConn) {
	var both sync.WaitGroup
	both.Go(func() {
		pass(server, client)
		_ = server.CloseWrite()
	})
	pass(client, server)
	client.Close()
	server.Close()
	both.Wait()
}

// pass copies with a small buffer. It hides the methods of the connections that would use splice(2): that needs a
// pipe for each direction and is no faster.
func pass(to, from *net.TCPConn) {
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, bufferSize))
}

// refuse sends an error to a client, encrypted if it asked for that, and closes the
// connection.
func (p *Proxy) refuse(c *client, o opening, r refusal) {
	_ = c.conn.SetDeadline(time.Now().Add(openingTime))
	if !o.encrypted {
		_, _ = c.conn.Write(r.packet())
		return
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(p.o.Directory(), certificates.File), filepath.Join(p.o.Directory(), certificates.KeyFile))
	if err != nil {
		p.o.Log.Debug("refuse a client", "error", err)
		return
	}
	conn := tls.Server(&replayed{c.conn, o.first}, &tls.Config{
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{"postgresql"}, MinVersion: tls.VersionTLS12,
	})
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(conn, header); err != nil {
		return
	}
	if length := binary.BigEndian.Uint32(header); length < headerSize || length > longest {
		return
	}
	if o.first, err = readPacket(conn, header); err == nil && o.parse() == nil {
		if r.code == invalidAuthorization {
			r = noEntry(c, o)
		}
		_, _ = conn.Write(r.packet())
	}
	_ = conn.Close()
}

// replayed is a connection of which something was read already.
type replayed struct {
	*net.TCPConn
	first []byte
}

// Read implements io.Reader.
func (r *replayed) Read(b []byte) (int, error) {
	if len(r.first) == 0 {
		return r.TCPConn.Read(b)
	}
	n := copy(b, r.first)
	r.first = r.first[n:]
	return n, nil
}
