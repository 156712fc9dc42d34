package certificates

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast/internal/durable"
)

// localDomains returns the domains that contain no public names. A machine may get a name or an
// address of its own network at any time, and clients that have the CA's certificate must still
// accept it then.
func localDomains() []string { return []string{"localhost", "local", "internal", "lan", "home.arpa"} }

// localNetworks returns loopback and the networks that the internet does not route.
func localNetworks() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
		netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"),
	}
}

// Bounded reports whether the CA's certificate limits the hosts for which the CA may issue. (It
// does not while the appliance serves only loopback.)
func (ca CA) Bounded() bool {
	return len(ca.certificate.PermittedDNSDomains) > 0 || len(ca.certificate.PermittedIPRanges) > 0
}

// Covers reports whether the CA's certificate allows it to issue for all of hosts.
func (ca CA) Covers(hosts []string) bool {
	return !ca.Bounded() || !slices.ContainsFunc(hosts, func(host string) bool { return !ca.covers(host) })
}

func (ca CA) covers(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return slices.ContainsFunc(ca.certificate.PermittedIPRanges, func(network *net.IPNet) bool { return network.Contains(ip) })
	}
	host = strings.ToLower(host)
	return slices.ContainsFunc(ca.certificate.PermittedDNSDomains, func(domain string) bool {
		return host == domain || strings.HasSuffix(host, "."+domain)
	})
}

// Bound publishes a certificate of the CA in dir that is limited to the old one's bounds, to hosts,
// and to local names and networks, and returns the CA with it. Its key and name stay. So
// certificates issued before verify with the new one, and certificates issued from now on verify
// with an old one, as far as its bounds allow.
func (ca CA) Bound(dir string, hosts []string) (CA, error) {
	template := caTemplate(time.Now())
	template.SubjectKeyId = ca.certificate.SubjectKeyId
	template.PermittedDNSDomainsCritical = true
	template.PermittedDNSDomains = append(localDomains(), ca.certificate.PermittedDNSDomains...)
	networks := localNetworks()
	for _, network := range ca.certificate.PermittedIPRanges {
		if prefix, err := netip.ParsePrefix(network.String()); err == nil {
			networks = append(networks, prefix)
		}
	}
	for _, host := range hosts {
		if address, err := netip.ParseAddr(host); err == nil {
			address = address.Unmap()
			networks = append(networks, netip.PrefixFrom(address, address.BitLen()))
		} else {
			template.PermittedDNSDomains = append(template.PermittedDNSDomains, strings.ToLower(host))
		}
	}
	template.PermittedDNSDomains = inOrder(template.PermittedDNSDomains)
	template.PermittedIPRanges = ranges(networks)
	certPEM, keyPEM, err := sign(template, template, ca.key, ca.key)
	if err != nil {
		return CA{}, fmt.Errorf("bound CA: %w", err)
	}
	bounded, err := parseCA(certPEM, keyPEM)
	if err != nil {
		return CA{}, fmt.Errorf("bound CA: %w", err)
	}
	return bounded, durable.WriteFile(filepath.Join(dir, caCertificateFile), certPEM, 0o644)
}

func inOrder(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// ranges returns the networks that no other of them contains.
func ranges(networks []netip.Prefix) (result []*net.IPNet) {
	slices.SortFunc(networks, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	var kept []netip.Prefix
	for _, network := range networks {
		if slices.ContainsFunc(kept, func(wider netip.Prefix) bool { return wider.Overlaps(network) }) {
			continue
		}
		kept = append(kept, network)
		address := network.Addr()
		result = append(result, &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(network.Bits(), address.BitLen())})
	}
	return result
}
