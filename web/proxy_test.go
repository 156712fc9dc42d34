package web

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"holdfast/server/api"
)

// TestBehindAProxy checks an appliance whose base URL is a proxy's: it accepts
// that host and trusts that origin, however the proxy rewrites the request, and
// its cookies are for HTTPS only.
func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	const base = "https://holdfast.example.com"
	c := openConsole(t, 0)
	handler, err := New(c.engine, Options{BaseURL: base, StatusOf: api.StatusOfError, Description: c.description, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	signIn := func(host, origin string) *http.Response {
		form := url.Values{"email": {"ada@example.com"}, "password": {"correct horse battery"}}.Encode()
		r := httptest.NewRequest(http.MethodPost, "/sign-in", strings.NewReader(form))
		r.Host = host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Result()
	}
	for _, host := range []string{"holdfast.example.com", "127.0.0.1:8432"} {
		answer := signIn(host, base)
		if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 2 || !answer.Cookies()[0].Secure || !answer.Cookies()[1].Secure {
			t.Errorf("%s: %s, %v", host, answer.Status, answer.Cookies())
		}
	}
	for host, origin := range map[string]string{"127.0.0.1:8432": "https://evil.example.com", "evil.example.com": base} {
		if answer := signIn(host, origin); answer.StatusCode < 400 || len(answer.Cookies()) > 0 {
			t.Errorf("%s from %s: %s", host, origin, answer.Status)
		}
	}
}

// TestFormsFromElsewhere checks that a form from another origin is refused with
// a page.
func TestFormsFromElsewhere(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	for path, contentType := range map[string]string{"/projects": "application/x-www-form-urlencoded", "/buckets": "text/plain"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.server.URL+path, strings.NewReader("name=mine"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", contentType)
		request.Header.Set("Origin", "null")
		answer, err := c.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusForbidden || !strings.Contains(string(page), "<h1>Not allowed</h1>") {
			t.Errorf("%s: %s, %v: %s", path, answer.Status, err, page)
		}
	}
}

// TestKnownHosts checks that the spelling of a host or an origin does not
// matter.
func TestKnownHosts(t *testing.T) {
	t.Parallel()
	for base, hosts := range map[string][]string{
		"https://Holdfast.Example.com:443": {"holdfast.example.com", "HOLDFAST.example.com:443", "localhost:1", "127.0.0.1", "[::1]:8432", "[::1]"},
		"http://[2001:db8::1]":             {"[2001:db8::1]", "[2001:DB8::1]:80"},
	} {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		p := pages{base: u}
		for _, host := range hosts {
			if !p.knownHost(host) {
				t.Errorf("%s does not know %s", base, host)
			}
		}
		if p.knownHost("evil.example.com") || p.knownHost("") {
			t.Errorf("%s knows everybody", base)
		}
	}
	for base, want := range map[string]string{
		"https://Holdfast.Example.com:443": "https://holdfast.example.com", "http://a:80": "http://a", "http://[::1]:8080": "http://[::1]:8080",
	} {
		u, err := url.Parse(base)
		if err != nil || originOf(u) != want {
			t.Errorf("%s: %s, %v", base, originOf(u), err)
		}
	}
}
