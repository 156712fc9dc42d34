package importer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"holdfast/internal/address"
)

// dialTimeout limits one connection attempt to one address.
const dialTimeout = 10 * time.Second

// ownPortError says that an address is this machine's, and why its port is refused.
type ownPortError struct{ reason string }

func (e *ownPortError) Error() string { return e.reason }

// literalAddress parses a host that is an IP address.
func literalAddress(host string) (netip.Addr, bool) {
	parsed, err := netip.ParseAddr(host)
	return parsed, err == nil
}

// dial connects to the source. It checks the address after name resolution, right before the system connects, so that
// the name cannot resolve to another address in between. It checks the port again once the connection exists: a server
// may have begun to listen there in between.
func (s Source) dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil, fmt.Errorf("%s %w", network, address.ErrRefused)
	}
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second, Control: func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return fmt.Errorf("%w: %w", address.ErrRefused, err)
		}
		if err := address.Check(to.Addr()); err != nil {
			return err
		}
		return s.checkOwn(to)
	}}
	conn, err := d.DialContext(ctx, network, hostPort)
	if err != nil {
		return nil, err
	}
	if err := s.checkPeer(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// checkPeer is checkOwn for the other end of a connection.
func (s Source) checkPeer(conn net.Conn) error {
	to, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return fmt.Errorf("%w: %w", address.ErrRefused, err)
	}
	return s.checkOwn(to)
}

// checkOwn refuses an address of this machine if [Source.RefusePort] refuses its port.
func (s Source) checkOwn(to netip.AddrPort) error {
	if s.RefusePort == nil {
		return nil
	}
	own, err := address.IsOwn(to.Addr())
	if err != nil {
		return err
	}
	if !own {
		return nil
	}
	reason, err := s.RefusePort(int(to.Port()))
	if err == nil && reason != "" {
		err = &ownPortError{reason}
	}
	return err
}
