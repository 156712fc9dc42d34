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

// errOwn says that an address is this machine's, and that its port is refused.
var errOwn = errors.New("is a port of this machine that is not to be imported from")

// literalAddress parses a host that is an IP address.
func literalAddress(host string) (netip.Addr, bool) {
	parsed, err := netip.ParseAddr(host)
	return parsed, err == nil
}

// dial connects to the source. It checks the address after name resolution, right before the system connects, so that
// the name cannot resolve to another address in between.
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
	return d.DialContext(ctx, network, hostPort)
}

// checkOwn refuses an address of this machine if [Source.Foreign] refuses its port.
func (s Source) checkOwn(to netip.AddrPort) error {
	if s.Foreign == nil {
		return nil
	}
	own, err := address.IsOwn(to.Addr())
	if err != nil {
		return err
	}
	if !own {
		return nil
	}
	foreign, err := s.Foreign(int(to.Port()))
	if err == nil && foreign {
		err = fmt.Errorf("%s %w", to, errOwn)
	}
	return err
}
