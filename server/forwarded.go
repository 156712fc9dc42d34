package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"holdfast/engine/model"
)

// trustedProxies are the proxies whose header names the client.
type trustedProxies struct {
	networks []netip.Prefix
	// standard means that they set Forwarded, and not X-Forwarded-For. The other header counts for nothing: a proxy
	// passes on what the client wrote into it.
	standard bool
}

func (t trustedProxies) contain(address netip.Addr) bool {
	return slices.ContainsFunc(t.networks, func(network netip.Prefix) bool { return network.Contains(address) })
}

// resolve replaces the address of each request that a trusted proxy forwarded by the client's address. Everything
// after it sees the client: budgets, sign-ins, the audit log.
func (t trustedProxies) resolve(next http.Handler) http.Handler {
	if len(t.networks) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, ok := parseNode(r.RemoteAddr)
		if ok && t.contain(peer) {
			r.RemoteAddr = t.nearest(peer, t.chain(r.Header)).String()
		}
		next.ServeHTTP(w, r)
	})
}

// chain returns the addresses that the proxies noted, the nearest last.
func (t trustedProxies) chain(header http.Header) []string {
	if t.standard {
		return forwardedFor(header.Values("Forwarded"))
	}
	return splitList(header.Values("X-Forwarded-For"))
}

// nearest follows the chain of addresses from the right, where the nearest proxy appends, and returns the first one
// that is not a trusted proxy. Whatever is to the left of it may be invented. An entry without an address ends the
// chain.
func (t trustedProxies) nearest(peer netip.Addr, chain []string) netip.Addr {
	for _, node := range slices.Backward(chain) {
		address, ok := parseNode(node)
		if !ok {
			return peer
		}
		if peer = address; !t.contain(peer) {
			return peer
		}
	}
	return peer
}

// parseNode parses an address with or without a port, as proxies and net/http write it.
func parseNode(node string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(strings.Trim(node, "[]"))
	if err != nil {
		address, err = netip.ParseAddr(strings.Trim(model.ClientIP(node), "[]"))
	}
	return address.Unmap().WithZone(""), err == nil
}

// splitList splits the values of a list header without quoted strings. Elements are not trimmed of anything but spaces: an empty one is
// malformed, and ends the chain.
func splitList(values []string) (elements []string) {
	for _, value := range values {
		for element := range strings.SplitSeq(value, ",") {
			elements = append(elements, strings.TrimSpace(element))
		}
	}
	return elements
}

// forwardedFor returns the parameter "for" of each element of the header Forwarded (RFC 7239), "" for an element
// without one. A line that does not end outside quotes is one element: what its last proxy appended cannot be told from
// what a client wrote.
func forwardedFor(values []string) (nodes []string) {
	for _, value := range values {
		elements, whole := splitUnquoted(value, ',')
		if !whole {
			nodes = append(nodes, "")
			continue
		}
		for _, element := range elements {
			nodes = append(nodes, forwardedNode(element))
		}
	}
	return nodes
}

// forwardedNode returns the parameter "for" of an element. A quoted string needs no escapes here: one that has them
// names no address.
func forwardedNode(element string) (node string) {
	pairs, _ := splitUnquoted(element, ';')
	for _, pair := range pairs {
		if name, value, _ := strings.Cut(pair, "="); strings.EqualFold(strings.TrimSpace(name), "for") {
			node = strings.TrimSpace(value)
		}
	}
	if len(node) > 1 && node[0] == '"' && node[len(node)-1] == '"' {
		node = node[1 : len(node)-1]
	}
	return node
}

// splitUnquoted splits a header's value at the separators outside quoted strings, and reports whether the last of
// these ends.
func splitUnquoted(value string, separator byte) (parts []string, whole bool) {
	quoted, escaped, start := false, false, 0
	for i := range len(value) {
		switch c := value[i]; {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			parts, start = append(parts, value[start:i]), i+1
		}
	}
	return append(parts, value[start:]), !quoted
}
