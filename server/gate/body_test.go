package gate

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// deadlines are connections that record their read deadline.
type deadlines struct{ net.Listener }

func (d deadlines) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	return &deadlineConn{Conn: conn}, err
}

type deadlineConn struct {
	net.Conn
	until atomic.Pointer[time.Time]
}

func (c *deadlineConn) SetReadDeadline(t time.Time) error {
	c.until.Store(&t)
	return c.Conn.SetReadDeadline(t)
}

// A body must not stall, and at its end the deadline is cleared: the server watches the connection then, and would
// cancel the request.
func TestDeadlineEndsWithTheBody(t *testing.T) {
	t.Parallel()
	type connKey struct{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := r.Context().Value(connKey{}).(*deadlineConn)
		body := &stream{x: &Exchange{ResponseWriter: w, Request: r}}
		if _, err := body.Read(make([]byte, 2)); err != nil || conn.until.Load().IsZero() || body.ended {
			t.Errorf("in the middle: until %v, %v", conn.until.Load(), err)
		}
		for range 2 { // a reader that checks for the end reads once more
			body.moved = time.Time{}
			if _, err := io.ReadAll(body); err != nil || !conn.until.Load().IsZero() || !body.ended {
				t.Errorf("at the end: until %v, %v", conn.until.Load(), err)
			}
		}
	}))
	server.Listener = deadlines{server.Listener}
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	server.Start()
	defer server.Close()
	for _, body := range []io.Reader{strings.NewReader("abc"), io.MultiReader(strings.NewReader("ab"), strings.NewReader("c"))} { // the second in chunks
		res, err := http.Post(server.URL, "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
}
