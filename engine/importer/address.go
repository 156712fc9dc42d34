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
)

// dialTimeout bounds one attempt to reach one address.
const dialTimeout = 10 * time.Second

// errAddress says that an address is none to import from.
var errAddress = errors.New("is not an address to import from")

// errOwn says that an address is this machine's, and not to be imported from.
var errOwn = errors.New("is a port of this machine that is not to be imported from")

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour = netip.MustParsePrefix("2002::/16")    // RFC 3056
	// Where clouds answer with the machine's own credentials, beside the
	// link-local 169.254.169.254.
	metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16")}
)

// checkAddress refuses the addresses that no database elsewhere has and a
// machine's own services do: link-local ones (cloud metadata), those that mean
// this machine by another name, multicast. Loopback and private networks stay:
// that is where people's databases are, and what is reached there must let the
// source's user in.
func checkAddress(address netip.Addr) error {
	address = embedded(address.WithZone("").Unmap())
	refused := ""
	switch {
	case address.IsLinkLocalUnicast(), address.IsLinkLocalMulticast(), address.IsInterfaceLocalMulticast():
		refused = "link-local"
	case address.IsUnspecified(), address.Is4() && address.As4()[0] == 0:
		refused = "unspecified"
	case address.IsMulticast(), address == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		refused = "for many receivers"
	default:
		for _, m := range metadata {
			if address == m {
				refused = "a cloud's own"
			}
		}
	}
	if refused == "" {
		return nil
	}
	return fmt.Errorf("%s %w: it is %s", address, errAddress, refused)
}

// embedded returns the IPv4 address that a translator would turn the IPv6 one
// into, and others as they are.
func embedded(address netip.Addr) netip.Addr {
	b := address.As16()
	switch {
	case !address.Is6():
		return address
	case nat64.Contains(address):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixToFour.Contains(address):
		return netip.AddrFrom4([4]byte(b[2:6]))
	default:
		return address
	}
}

// literalAddress reads a host that is an IP address.
func literalAddress(host string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(host)
	return address, err == nil
}

// dial connects to the source. The checks come after the name is resolved and
// right before the system connects, so that a name cannot mean another address
// the second time.
func (s Source) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil, fmt.Errorf("%s %w", network, errAddress)
	}
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %w", errAddress, err)
		}
		if err := checkAddress(to.Addr()); err != nil {
			return err
		}
		return s.checkOwn(to)
	}}
	return d.DialContext(ctx, network, address)
}

// checkOwn refuses an address of this machine with a port that [Source.Foreign]
// knows.
func (s Source) checkOwn(to netip.AddrPort) error {
	if s.Foreign == nil {
		return nil
	}
	address := embedded(to.Addr().WithZone("").Unmap())
	own := address.IsLoopback()
	if !own {
		networks, err := net.InterfaceAddrs()
		if err != nil {
			return fmt.Errorf("list the machine's addresses: %w", err)
		}
		for _, network := range networks {
			prefix, err := netip.ParsePrefix(network.String())
			own = own || err == nil && prefix.Addr().WithZone("").Unmap() == address
		}
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
