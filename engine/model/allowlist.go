package model

import (
	"net/netip"
	"slices"
)

// MaxAllowlist is the maximum number of entries in an allow-list.
const MaxAllowlist = 200

// ParseAllowlist checks the addresses and networks of the input named field and
// returns them in canonical form, in their original order, without duplicates.
func ParseAllowlist(field string, entries []string) ([]netip.Prefix, error) {
	if len(entries) > MaxAllowlist {
		return nil, Invalid(field, "must have at most %d entries, not %d", MaxAllowlist, len(entries))
	}
	prefixes := make([]netip.Prefix, 0, len(entries))
	for _, entry := range entries {
		prefix, err := parseNetwork(field, entry)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(prefixes, prefix) {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes, nil
}

func parseNetwork(field, entry string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(entry); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(entry)
	if err != nil || prefix.Addr().Is4In6() {
		return prefix, Invalid(field, "%q is neither an IPv4 or IPv6 address nor a network such as 10.0.0.0/8", entry)
	}
	if prefix != prefix.Masked() {
		return prefix, Invalid(field, "%q has bits set behind its prefix; %s is the network", entry, prefix.Masked())
	}
	return prefix, nil
}

// FormatNetwork formats a network for clients: a single address has no prefix
// length.
func FormatNetwork(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// FormatNetworks formats networks with FormatNetwork.
func FormatNetworks(networks []netip.Prefix) []string {
	texts := make([]string, len(networks))
	for i, network := range networks {
		texts[i] = FormatNetwork(network)
	}
	return texts
}
