package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// hostile is a server with a guarded listener, and clients at separate addresses in 127.0.0.0/8, which are not taken
// for one machine's.
type hostile struct {
	t        *testing.T
	listener *guarded
	// slow ends when requests to /slow should end.
	slow    context.Context
	release context.CancelFunc
}

func serveHostile(t *testing.T, most int) *hostile {
	t.Helper()
	h := &hostile{t: t, listener: listenGuarded(t, most, time.Minute)}
	h.slow, h.release = context.WithCancel(context.Background())
	h.listener.limit.shared = func(a netip.Addr) bool { return a == netip.MustParseAddr("127.9.9.9") }
	srv := newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			known(r)
		}
		if r.URL.Path == "/slow" {
			_ = http.NewResponseController(w).Flush()
			<-h.slow.Done()
		}
		fmt.Fprint(w, "done")
	}), Timeouts{}.orDefaults(), slog.New(slog.DiscardHandler))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(h.listener)
	}()
	t.Cleanup(func() {
		h.release()
		srv.Close()
		<-ended
	})
	return h
}

func (h *hostile) dial(from string) net.Conn {
	h.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(h.t.Context(), "tcp", h.listener.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a request and waits for the head of its response, or returns the error.
func (h *hostile) ask(conn net.Conn, path, head string) error {
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		h.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: h\r\n%s\r\n", path, head); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	if path != "/slow" {
		_, err = io.ReadAll(answer.Body)
	}
	return err
}

// wait polls until the connections are as expected.
func (h *hostile) wait(what string, as func(w *connectionLimit) bool) {
	h.t.Helper()
	testenv.Eventually(h.t, what, func() bool {
		h.listener.limit.mu.Lock()
		defer h.listener.limit.mu.Unlock()
		return as(h.listener.limit)
	})
}

func (h *hostile) cut(conn net.Conn) bool {
	h.t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		h.t.Fatal(err)
	}
	_, err := conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, net.ErrClosed) && !isTimeout(err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestOneAddressDoesNotHoldEveryConnection has one address take all connections, idle. Every client at another
// address is served, and only connections of the first are closed.
func TestOneAddressDoesNotHoldEveryConnection(t *testing.T) {
	t.Parallel()
	const most = 50
	h := serveHostile(t, most)
	early := h.dial("127.0.1.1")
	if err := h.ask(early, "/", ""); err != nil {
		t.Fatal(err)
	}
	attack := make([]net.Conn, 3*most)
	for n := range attack {
		attack[n] = h.dial("127.0.2.2")
	}
	h.wait("the attacker holds the rest", func(w *connectionLimit) bool { return w.total == most })
	for n := range 2 * most {
		if err := h.ask(h.dial(fmt.Sprintf("127.0.3.%d", n/10+1)), "/", ""); err != nil {
			t.Fatalf("client %d: %v", n, err)
		}
	}
	if err := h.ask(early, "/", ""); err != nil {
		t.Errorf("the client that was there before: %v", err)
	}
	if !h.cut(attack[0]) {
		t.Error("the attacker's first connection is still there")
	}
}

// TestStrangersAtManyAddressesYieldToKnown: an identified client keeps its idle connection while strangers at as
// many addresses as there are slots take all others in turn.
func TestStrangersAtManyAddressesYieldToKnown(t *testing.T) {
	t.Parallel()
	const most = 20
	h := serveHostile(t, most)
	member := h.dial("127.0.1.1")
	if err := h.ask(member, "/", "Authorization: Bearer k\r\n"); err != nil {
		t.Fatal(err)
	}
	for n := range 5 * most {
		h.dial(fmt.Sprintf("127.0.4.%d", n+1))
	}
	h.wait("all places are taken", func(w *connectionLimit) bool { return w.total >= most })
	if err := h.ask(member, "/", "Authorization: Bearer k\r\n"); err != nil {
		t.Errorf("the known client: %v", err)
	}
}

// TestRequestsUnderWay: strangers' requests are closed last, those of the client with the most first, and those of
// known clients and of a proxy never.
func TestRequestsUnderWay(t *testing.T) {
	t.Parallel()
	h := serveHostile(t, 6)
	var attack []net.Conn
	for range 4 {
		attack = append(attack, h.dial("127.0.2.2"))
		if err := h.ask(attack[len(attack)-1], "/slow", ""); err != nil {
			t.Fatal(err)
		}
	}
	member, proxied := h.dial("127.0.1.1"), h.dial("127.9.9.9")
	if err := errors.Join(h.ask(member, "/slow", "Authorization: Bearer k\r\n"), h.ask(proxied, "/slow", "")); err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		if err := h.ask(h.dial(fmt.Sprintf("127.0.5.%d", n+1)), "/slow", "Authorization: Bearer k\r\n"); err != nil {
			t.Fatalf("client %d: %v", n, err)
		}
		if !h.cut(attack[n]) {
			t.Errorf("request %d of the attacker is still there", n)
		}
	}
	// Nothing left can be closed: a new connection waits for a free slot.
	last := h.dial("127.0.6.1")
	h.wait("the last has come", func(w *connectionLimit) bool { return w.total == 7 })
	h.release()
	if err := h.ask(last, "/", ""); err != nil {
		t.Errorf("the one that waited: %v", err)
	}
}
