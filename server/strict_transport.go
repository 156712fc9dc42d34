package server

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// strictTransport adds the header Strict-Transport-Security (RFC 6797), which
// has a browser use HTTPS alone for a host, on all its ports, for a time. It
// names no other host than the one of an https base URL: not an address, for
// which browsers ignore the header, and not localhost, which other programs
// share.
func strictTransport(next http.Handler, base *url.URL, value string) http.Handler {
	host := strings.ToLower(base.Hostname())
	if value == "" || base.Scheme != "https" || !isOneMachine(host) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without TLS the request is a proxy's, which may have changed the host.
		// Browsers ignore the header where they get it in the clear.
		if asked := (&url.URL{Host: r.Host}).Hostname(); r.TLS == nil || strings.EqualFold(asked, host) {
			w.Header().Set("Strict-Transport-Security", value)
		}
		next.ServeHTTP(w, r)
	})
}

// isOneMachine reports whether a host in lower case is a name that stands for
// one machine everywhere.
func isOneMachine(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && host != "localhost" && !strings.HasSuffix(host, ".localhost")
}
