package api

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"holdfast/engine/model"
)

// TestStalledBody sees to it that a body that does not arrive is given up, and
// that the client is told so at once.
func TestStalledBody(t *testing.T) {
	w := open(t)
	g := &gate{engine: w.engine, log: slog.New(slog.DiscardHandler), maxBody: 100, bodyTimeout: 50 * time.Millisecond}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		x := g.begin(rw, r, model.OperationFor(model.ActionDatabaseList))
		defer x.end()
		_, err := x.receive()
		if model.CodeOf(err) != model.CodeValidation {
			t.Errorf("%v", err)
		}
		x.refuse(err)
	}))
	defer server.Close()
	stalled := &world{server: server}
	began := time.Now()
	res := stalled.raw(t, "POST / HTTP/1.1\r\nContent-Length: 100", "{", false)
	if res == nil || res.StatusCode != 422 || time.Since(began) > drainTimeout {
		t.Errorf("%v after %s", res, time.Since(began))
	}
}
