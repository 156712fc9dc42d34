package server

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// strictTransport adds the header Strict-Transport-Security (RFC 6797), which makes browsers use only HTTPS for a
// host, on all its ports, for a time. It applies only to the host of an https base URL: not to an address, for which
// browsers ignore the header, or to localhost, which other programs share.
func strictTransport(next http.Handler, base *url.URL, value string) http.Handler {
	host := strings.ToLower(base.Hostname())
	if value == "" || base.Scheme != "https" || !isOneMachine(host) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A request without TLS comes from a proxy, which may have changed the host. Browsers ignore the header over
		// plain HTTP.
		if asked := (&url.URL{Host: r.Host}).Hostname(); r.TLS == nil || strings.EqualFold(asked, host) {
			w.Header().Set("Strict-Transport-Security", value)
		}
		next.ServeHTTP(w, r)
	})
}

// isOneMachine reports whether a lower-case host is a name that identifies one machine everywhere.
func isOneMachine(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && host != "localhost" && !strings.HasSuffix(host, ".localhost")
}
