package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func listenGuarded(t *testing.T, places int, patience time.Duration) *guarded {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := guard(l, places, patience)
	t.Cleanup(func() { g.Close() })
	return g
}

func dialTo(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// large is the amount that the tests of slow clients send at a time.
const large = 64 << 20

// temporaryFile returns an open file.
func temporaryFile(t *testing.T, before string, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, append([]byte(before), content...), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// sendLarge accepts a client with a patience, and sends it a large amount, from memory or from a file.
func sendLarge(t *testing.T, fromFile bool, patience time.Duration) (client net.Conn, content []byte, sent <-chan error) {
	t.Helper()
	content = make([]byte, large)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	var src io.Reader = struct{ io.Reader }{bytes.NewReader(content)}
	if fromFile {
		const before = "what is not sent"
		f := temporaryFile(t, before, content)
		if _, err := f.Seek(int64(len(before)), io.SeekStart); err != nil {
			t.Fatal(err)
		}
		src = io.LimitReader(f, large)
	}
	l := listenGuarded(t, 1, patience)
	client = dialTo(t, l)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, src)
		done <- errors.Join(err, conn.Close())
	}()
	return client, content, done
}

// TestClientThatTakesNothing checks that a client that requests a large amount and reads none of it does not keep
// its connection and the file.
func TestClientThatTakesNothing(t *testing.T) {
	t.Parallel()
	for _, fromFile := range []bool{false, true} {
		_, _, sent := sendLarge(t, fromFile, 50*time.Millisecond)
		if err := <-sent; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("from a file %t: %v", fromFile, err)
		}
	}
}

// TestClientThatTakesItsTime has a client read steadily, for much longer than it may read nothing, and get every byte once.
func TestClientThatTakesItsTime(t *testing.T) {
	t.Parallel()
	for _, fromFile := range []bool{false, true} {
		t.Run(fmt.Sprintf("from a file %t", fromFile), func(t *testing.T) {
			t.Parallel()
			client, content, sent := sendLarge(t, fromFile, time.Second)
			var got bytes.Buffer
			for {
				if _, err := io.CopyN(&got, client, 1<<20); err != nil {
					break
				}
				time.Sleep(40 * time.Millisecond) // a slow connection
			}
			if err := <-sent; err != nil || !bytes.Equal(got.Bytes(), content) {
				t.Errorf("%d bytes of %d, %v", got.Len(), large, err)
			}
		})
	}
}

// TestListenNeedsAnAddress: an empty address does not mean every address.
func TestListenNeedsAnAddress(t *testing.T) {
	t.Parallel()
	if l, err := Listen("", nil); err == nil {
		t.Errorf("it listens on %s", l.Addr())
		l.Close()
	}
}

// TestConnectionsAreBounded: if no connection can be closed, one beyond the limit waits, and is served when another
// ends.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	l := listenGuarded(t, 2, time.Minute)
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			conn, err := l.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				return
			}
			l.limit.move(conn.(*guardedConn), func(kind) kind { return fromKnownClient | busy })
			accepted <- conn
		}
	}()
	for range 3 {
		dialTo(t, l)
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Error("a third connection was let in")
	case <-time.After(50 * time.Millisecond):
	}
	first.Close()
	first.Close() // frees its slot once
	third := <-accepted
	dialTo(t, l)
	select {
	case <-accepted:
		t.Error("a place was given back twice")
	case <-time.After(50 * time.Millisecond):
	}
	if err := l.Close(); err != nil { // while Accept waits for a slot
		t.Error(err)
	}
	if _, more := <-accepted; more {
		t.Error("a connection was let in by a closed listener")
	}
	second.Close()
	third.Close()
}

// TestBodyThatDoesNotCome checks that a request whose body does not arrive does not keep its connection, whether the
// body is read or not.
func TestBodyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	read := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) })
	unread := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for name, handler := range map[string]http.Handler{"read": read, "unread": unread} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listenGuarded(t, 10, time.Minute)
			srv := newHTTPServer(handler, Timeouts{}.orDefaults(), slog.New(slog.DiscardHandler))
			srv.ReadTimeout = 50 * time.Millisecond
			go srv.Serve(l)
			defer srv.Close()
			conn := dialTo(t, l)
			if _, err := io.WriteString(conn, "POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nemail="); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(conn); err != nil {
				t.Errorf("the connection is still there: %v", err)
			}
		})
	}
}

// TestHandlersMayTakeTheirTime: the deadline of bodies does not limit what follows.
func TestHandlersMayTakeTheirTime(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "a body"} {
		l := listenGuarded(t, 10, time.Minute)
		srv := newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			select {
			case <-r.Context().Done():
				t.Errorf("with %q the request was given up: %v", body, r.Context().Err())
			case <-time.After(200 * time.Millisecond):
			}
		}), Timeouts{}.orDefaults(), slog.New(slog.DiscardHandler))
		if srv.ReadTimeout == 0 {
			t.Error("bodies have no bound")
		}
		srv.ReadTimeout = 50 * time.Millisecond
		go srv.Serve(l)
		res, err := http.Post("http://"+l.Addr().String(), "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		srv.Close()
	}
}
