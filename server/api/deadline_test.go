package api

import (
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/server/gate"
)

// TestStalledBody checks that a stalled body is abandoned, and that the client is told so immediately.
func TestStalledBody(t *testing.T) {
	w := open(t)
	g := newGate(w.engine, Options{Log: slog.New(slog.DiscardHandler)})
	g.BodyTimeout = 50 * time.Millisecond
	server := httptest.NewServer(g.Open(model.OperationFor(model.ActionDatabaseList), func(x *gate.Exchange) error {
		_, err := x.ReadBody()
		if model.CodeOf(err) != model.CodeValidation {
			t.Errorf("%v", err)
		}
		return err
	}))
	defer server.Close()
	stalled := &world{server: server}
	began := time.Now()
	res := stalled.raw(t, "POST / HTTP/1.1\r\nContent-Length: 100", "{", false)
	if res == nil || res.StatusCode != 422 || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %s", res, time.Since(began))
	}
}
