package server

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"holdfast/engine/model"
)

func TestForwardedClient(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	const proxy = "127.0.0.1:40000"
	for _, test := range []struct {
		name, peer    string
		old, standard []string
		want          string
	}{
		{"no proxy", "203.0.113.9:1", []string{"198.51.100.1"}, nil, "203.0.113.9"},
		{"no header", proxy, nil, nil, "127.0.0.1"},
		{"one proxy", proxy, []string{"198.51.100.1"}, nil, "198.51.100.1"},
		{"a chain of proxies", proxy, []string{"198.51.100.1, 10.1.1.1"}, nil, "198.51.100.1"},
		{"an invented beginning", proxy, []string{"10.9.9.9, 192.0.2.66, 198.51.100.1"}, nil, "198.51.100.1"},
		{"two header lines", proxy, []string{"192.0.2.66", "198.51.100.1"}, nil, "198.51.100.1"},
		{"only proxies", proxy, []string{"10.1.1.1, 10.1.1.2"}, nil, "10.1.1.1"},
		{"a port", proxy, []string{"198.51.100.1:4711"}, nil, "198.51.100.1"},
		{"IPv6", proxy, []string{"2001:db8::7"}, nil, "2001:db8::7"},
		{"IPv6 and a port", proxy, []string{"[2001:db8::7]:99"}, nil, "2001:db8::7"},
		{"IPv6 proxy", "[2001:db8:1::1]:1", []string{"2001:db8::7, 2001:db8:1::2"}, nil, "2001:db8::7"},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:1", []string{"::ffff:198.51.100.1"}, nil, "198.51.100.1"},
		{"no address", proxy, []string{"198.51.100.1, unknown"}, nil, "127.0.0.1"},
		{"no address before a proxy", proxy, []string{"unknown, 10.1.1.1"}, nil, "10.1.1.1"},
		{"an empty entry", proxy, []string{"198.51.100.1,"}, nil, "127.0.0.1"},
		{"the standard header", proxy, nil, []string{`proto=https;For="[2001:db8::7]:4711";by=10.1.1.1`}, "2001:db8::7"},
		{"a standard chain", proxy, nil, []string{"for=192.0.2.66, for=198.51.100.1", "for=10.0.0.7"}, "198.51.100.1"},
		{"a hidden client", proxy, nil, []string{"for=_secret"}, "127.0.0.1"},
		{"a list in quotes", proxy, nil, []string{`for=198.51.100.1;host="shop.example, for=192.0.2.66"`}, "198.51.100.1"},
		{"a pair in quotes", proxy, nil, []string{`for=198.51.100.1;host="x;for=192.0.2.66"`}, "198.51.100.1"},
		{"a quote in quotes", proxy, nil, []string{`for=198.51.100.1;host="x\", for=192.0.2.66"`}, "198.51.100.1"},
		{"quotes that do not end", proxy, nil, []string{`for="192.0.2.66, for=198.51.100.1`}, "127.0.0.1"},
		{"quotes that do not end, then another proxy", proxy, nil, []string{`for="192.0.2.66`, "for=198.51.100.1"}, "198.51.100.1"},
		{"quotes paired wrongly", proxy, nil, []string{`for="x, for=198.51.100.1;host=", for=\"192.0.2.66"`}, "127.0.0.1"},
		{"an element without a client", proxy, nil, []string{"for=198.51.100.1, proto=http"}, "127.0.0.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got string
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = test.peer
			// The proxy passes on the header that it does not set.
			r.Header = http.Header{"X-Forwarded-For": {"192.0.2.7"}, "Forwarded": {"for=192.0.2.7"}}
			trusted := trustedProxies{networks: networks, standard: test.standard != nil}
			if trusted.standard {
				r.Header["Forwarded"] = test.standard
			} else {
				r.Header["X-Forwarded-For"] = test.old
			}
			trusted.resolve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = model.ClientIP(r.RemoteAddr)
			})).ServeHTTP(httptest.NewRecorder(), r)
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
