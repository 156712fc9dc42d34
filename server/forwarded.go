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

// splitList splits the values of a list header. Elements are not trimmed of anything but spaces: an empty one is
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
// without one. Quoted strings need no escapes here: an element with one names no address.
func forwardedFor(values []string) []string {
	elements := splitList(values)
	for i, element := range elements {
		elements[i] = ""
		for pair := range strings.SplitSeq(element, ";") {
			if name, node, _ := strings.Cut(pair, "="); strings.EqualFold(strings.TrimSpace(name), "for") {
				elements[i] = strings.Trim(strings.TrimSpace(node), `"`)
			}
		}
	}
	return elements
}
