package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCrowd: one address, with its IPv6 network, gets no more than its share of requests at once; others get theirs.
func TestCrowd(t *testing.T) {
	t.Parallel()
	clients := newCrowd()
	enter, leave := make(chan struct{}), make(chan struct{})
	held := clients.admit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { enter <- struct{}{}; <-leave }))
	free := clients.admit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	get := func(h http.Handler, address string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	ended := make(chan struct{})
	for n := range maxRunning {
		go func() { get(held, fmt.Sprintf("[2001:db8::%x]:1000", n)); ended <- struct{}{} }()
		<-enter
	}
	if w := get(free, "[2001:db8::ffff:1]:1000"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"rate_limited"`) {
		t.Errorf("one too many: %d %v %s", w.Code, w.Header(), w.Body)
	}
	for _, address := range []string{"[2001:db8:0:1::1]:1000", "192.0.2.1:1000", "127.0.0.1:1000"} {
		if w := get(free, address); w.Code != http.StatusOK {
			t.Errorf("%s: %d", address, w.Code)
		}
	}
	for range maxRunning {
		leave <- struct{}{}
		<-ended
	}
	if w := get(free, "[2001:db8::1]:1000"); w.Code != http.StatusOK || len(clients.running) != 0 {
		t.Errorf("afterwards: %d, %v", w.Code, clients.running)
	}
}
