package api

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/server/gate"
)

// TestStalledBody sees to it that a body that does not arrive is given up, and
// that the client is told so at once.
func TestStalledBody(t *testing.T) {
	w := open(t)
	limits := bodyLimits{100, 50 * time.Millisecond}
	g := newGate(w.engine, Options{Log: slog.New(slog.DiscardHandler)}, limits)
	server := httptest.NewServer(g.Open(model.OperationFor(model.ActionDatabaseList), http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, err := limits.read(r)
		if model.CodeOf(err) != model.CodeValidation {
			t.Errorf("%v", err)
		}
		gate.Refuse(rw, r, err)
	})))
	defer server.Close()
	stalled := &world{server: server}
	began := time.Now()
	res := stalled.raw(t, "POST / HTTP/1.1\r\nContent-Length: 100", "{", false)
	if res == nil || res.StatusCode != 422 || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %s", res, time.Since(began))
	}
}
