package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// TestStreamsThatTakeNothing: clients of HTTP/2 that read no response keep nothing for longer than those of HTTP/1.1.
func TestStreamsThatTakeNothing(t *testing.T) {
	t.Parallel()
	var running atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(make([]byte, large)))
	})
	l := listenGuarded(t, 8, 200*time.Millisecond)
	server := newHTTPServer(handler, Timeouts{}.orDefaults(), slog.New(slog.DiscardHandler))
	go server.Serve(tls.NewListener(l, &tls.Config{Certificates: testCertificates(t), NextProtos: []string{"h2", "http/1.1"}}))
	t.Cleanup(func() { server.Close() })
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	const streams = 20
	for range streams {
		answer, err := client.Get("https://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.ProtoMajor != 2 {
			t.Fatalf("answered by %s", answer.Proto)
		}
	}
	testenv.Within(t, 20*time.Second, "the end of all responses", func() bool { return running.Load() == 0 })
}

// testCertificates returns a certificate for tests.
func testCertificates(t *testing.T) []tls.Certificate {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return s.TLS.Certificates
}

// TestStreamThatTakesItsTime has a client of HTTP/2 read steadily, for much longer than one write may take.
func TestStreamThatTakesItsTime(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(make([]byte, large)))
	})
	l := listenGuarded(t, 8, time.Second)
	server := newHTTPServer(handler, Timeouts{}.orDefaults(), slog.New(slog.DiscardHandler))
	go server.Serve(tls.NewListener(l, &tls.Config{Certificates: testCertificates(t), NextProtos: []string{"h2"}}))
	t.Cleanup(func() { server.Close() })
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	answer, err := client.Get("https://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for got := int64(0); got < large; {
		n, err := io.CopyN(io.Discard, answer.Body, 1<<20)
		if got += n; err != nil {
			t.Fatalf("%d bytes of %d, %v", got, large, err)
		}
		time.Sleep(40 * time.Millisecond) // a slow connection
	}
}

// TestDeadlineOfHandler: a deadline that a handler sets for its own writes holds, although the connection has more patience.
func TestDeadlineOfHandler(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Error(err)
		}
		_, err := w.Write(make([]byte, large))
		ended <- err
	})
	l := listenGuarded(t, 8, time.Hour)
	server := newHTTPServer(handler, Timeouts{}.orDefaults(), slog.New(slog.DiscardHandler))
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	answer, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
