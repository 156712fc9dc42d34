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

// dialTimeout limits one connection attempt to one address.
const dialTimeout = 10 * time.Second

// errAddress says that the importer refuses an address.
var errAddress = errors.New("is not an address to import from")

// errOwn says that an address is this machine's, and that its port is refused.
var errOwn = errors.New("is a port of this machine that is not to be imported from")

// refusedPrefixes are networks that contain no remote database. Prefixes that embed an IPv4 address are refused as a
// whole where the translation is deprecated (6to4, Teredo, IPv4-compatible, IPv4-translated).
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

// ipv4Compatible is the deprecated form of IPv4 addresses; it also contains loopback and the unspecified address.
var ipv4Compatible = netip.MustParsePrefix("::/96")

// checkAddress refuses addresses that no remote database has but local services do: link-local ones (cloud metadata),
// aliases of this machine, multicast. Loopback and private networks are allowed: users' databases are there, and a
// service reached there must still accept the source's user.
func checkAddress(address netip.Addr) error {
	for _, meant := range meanings(address) {
		if why := refusal(meant); why != "" {
			return fmt.Errorf("%s %w: it is %s", address, errAddress, why)
		}
	}
	return nil
}

// refusal returns why an address is refused, or "".
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

// meanings returns every address that packets to the given one may reach: the address without its zone and, if a
// translator would turn it into an IPv4 address, that address. Below the prefix for local use the network's operator
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
			if other[0] != 0 { // otherwise the layout is another one
				all = append(all, netip.AddrFrom4(other))
			}
		}
		return all
	default:
		return []netip.Addr{address}
	}
}

// literalAddress parses a host that is an IP address.
func literalAddress(host string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(host)
	return address, err == nil
}

// dial connects to the source. It checks the address after name resolution, right before the system connects, so that
// the name cannot resolve to another address in between.
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

// checkOwn refuses an address of this machine if [Source.Foreign] refuses its port.
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

// isOwn reports whether one of the addresses belongs to this machine.
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
