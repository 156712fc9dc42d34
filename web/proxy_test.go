package web

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"holdfast/server/api"
)

// Behind a proxy the appliance has the address by which browsers reach it:
// that host is known and that origin trusted, however the proxy rewrites the
// request, and cookies are for HTTPS only.
func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	const base = "https://holdfast.example.com"
	c := openConsole(t, 0)
	handler, err := New(c.engine, Options{BaseURL: base, StatusOf: api.StatusOf, Description: c.description, Log: slog.New(slog.DiscardHandler)})
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
		if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 || !answer.Cookies()[0].Secure {
			t.Errorf("%s: %s, %v", host, answer.Status, answer.Cookies())
		}
	}
	for host, origin := range map[string]string{"127.0.0.1:8432": "https://evil.example.com", "evil.example.com": base} {
		if answer := signIn(host, origin); answer.StatusCode < 400 || len(answer.Cookies()) > 0 {
			t.Errorf("%s from %s: %s", host, origin, answer.Status)
		}
	}
}
