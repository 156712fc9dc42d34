package importer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
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

// refusedPrefixes are the networks that no database elsewhere is in. The
// prefixes with an IPv4 address inside are refused as a whole where the
// translation is deprecated (6to4, Teredo, IPv4-compatible, IPv4-translated).
var refusedPrefixes = []struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved or multicast"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved for protocols"}, // Oracle Cloud: 192.0.0.192
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "an IPv4 address in a deprecated form"},
	{netip.MustParsePrefix("2001::/32"), "an IPv4 address in a deprecated form"},
	{netip.MustParsePrefix("2002::/16"), "an IPv4 address in a deprecated form"},
	{netip.MustParsePrefix("100.100.100.200/32"), "a cloud's metadata service"},     // Alibaba Cloud
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's metadata service"},       // Azure
	{netip.MustParsePrefix("fd00:ec2::/32"), "a cloud's metadata service"},          // AWS, with its DNS, time and credentials
	{netip.MustParsePrefix("fd20:ce::254/128"), "a cloud's metadata service"},       // Google Cloud
	{netip.MustParsePrefix("fd00:42::42/128"), "a cloud's metadata service"},        // Scaleway
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), "a cloud's metadata service"}, // Oracle Cloud
	{netip.MustParsePrefix("fd00:a9fe:a9fe::/48"), "a cloud's metadata service"},    // Akamai (Linode)
}

// ipv4Compatible is the deprecated form of IPv4 addresses that loopback and the
// unspecified address are in, too.
var ipv4Compatible = netip.MustParsePrefix("::/96")

// checkAddress refuses the addresses that no database elsewhere has and a
// machine's own services do: link-local ones (cloud metadata), those that mean
// this machine by another name, multicast. Loopback and private networks stay:
// that is where people's databases are, and what is reached there must let the
// source's user in.
func checkAddress(address netip.Addr) error {
	for _, meant := range meanings(address) {
		if why := refusal(meant); why != "" {
			return fmt.Errorf("%s %w: it is %s", address, errAddress, why)
		}
	}
	return nil
}

// refusal says why an address is refused, "" if it is not.
func refusal(address netip.Addr) string {
	for _, refused := range refusedPrefixes {
		if refused.prefix.Contains(address) {
			return refused.why
		}
	}
	switch {
	case address.IsUnspecified():
		return "unspecified"
	case ipv4Compatible.Contains(address) && !address.IsLoopback():
		return "an IPv4 address in a deprecated form"
	default:
		return ""
	}
}

// The prefixes under which a translator (NAT64) reaches IPv4 addresses.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")   // RFC 6052
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215
)

// meanings returns every address that packets to the given one may reach: the
// address without its zone and, when a translator would turn it into an IPv4
// address, that one. Below the prefix for local use the operator of the network
// chooses where the IPv4 address is; all layouts of RFC 6052 are returned.
func meanings(address netip.Addr) []netip.Addr {
	address = address.WithZone("").Unmap()
	b := address.As16()
	switch {
	case !address.Is6():
		return []netip.Addr{address}
	case nat64.Contains(address):
		return []netip.Addr{address, netip.AddrFrom4([4]byte(b[12:]))}
	case nat64Local.Contains(address):
		all := []netip.Addr{address, netip.AddrFrom4([4]byte(b[12:]))}                                                        // /96
		for _, other := range [][4]byte{{b[6], b[7], b[9], b[10]}, {b[7], b[9], b[10], b[11]}, {b[9], b[10], b[11], b[12]}} { // /48, /56, /64
			if other[0] != 0 { // else the layout is another
				all = append(all, netip.AddrFrom4(other))
			}
		}
		return all
	default:
		return []netip.Addr{address}
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
	own, err := isOwn(meanings(to.Addr()))
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

// isOwn reports whether one of the addresses is this machine's.
func isOwn(addresses []netip.Addr) (bool, error) {
	if slices.ContainsFunc(addresses, netip.Addr.IsLoopback) {
		return true, nil
	}
	networks, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("list the machine's addresses: %w", err)
	}
	return slices.ContainsFunc(networks, func(network net.Addr) bool {
		prefix, err := netip.ParsePrefix(network.String())
		return err == nil && slices.Contains(addresses, prefix.Addr().WithZone("").Unmap())
	}), nil
}
