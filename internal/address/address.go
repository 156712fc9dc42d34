// Package address says which network addresses a stranger may have the appliance connect to.
package address

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// ErrRefused says that an address is refused.
var ErrRefused = errors.New("is not an address to connect to")

// refusedPrefixes are networks that contain no service that a stranger may name. Prefixes that embed an IPv4 address are refused as a
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

// Check refuses addresses that no remote service has but local ones do: link-local ones (cloud metadata), aliases of
// this machine, multicast. Loopback and private networks are allowed.
func Check(address netip.Addr) error {
	for _, meant := range meanings(address) {
		if why := refusal(meant); why != "" {
			return fmt.Errorf("%s %w: it is %s", address, ErrRefused, why)
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

// notPublic are networks, beside private ones, that are not part of the Internet (RFC 6890).
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("5f00::/16"),
}

// CheckPublic is Check, and refuses private networks and the machine's own addresses too.
func CheckPublic(address netip.Addr) error {
	if err := Check(address); err != nil {
		return err
	}
	own, err := IsOwn(address)
	if err != nil {
		return err
	}
	for _, meant := range meanings(address) {
		if own || meant.IsPrivate() || slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(meant) }) {
			return fmt.Errorf("%s %w: it is not public", address, ErrRefused)
		}
	}
	return nil
}

// IsOwn reports whether an address reaches this machine.
func IsOwn(address netip.Addr) (bool, error) {
	addresses := meanings(address)
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
