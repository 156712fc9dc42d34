package server

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/server/api/wire"
)

// TestRefusalsOfTheServer sends what no handler sees. The response is in the envelope, and a handler's own response
// that looks like such a refusal is left alone, also between two requests of a connection.
func TestRefusalsOfTheServer(t *testing.T) {
	t.Parallel()
	l := listenGuarded(t, 100, writePatience)
	const imitation = "HTTP/1.1 400 Bad Request\r\nA: b\r\n\r\n400 Bad Request"
	server := newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(imitation))
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write([]byte(imitation))
	}), Timeouts{}.orDefaults(), slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() { server.Close(); <-ended })
	const good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, test := range []struct {
		name, input string
		status      int
		says        string
	}{
		{"not HTTP", "nonsense\r\n\r\n", 400, "not a valid HTTP request"},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400, "missing required Host header"},
		{"a bad header", "GET / HTTP/1.1\r\nHost: a\r\nb c: d\r\n\r\n", 400, "not a valid HTTP request"},
		{"large headers", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", maxHeaderBytes+8192) + "\r\n\r\n", 431, "64 KiB"},
		{"transfer encoding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "chunked"},
		{"expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nContent-Length: 0\r\n\r\n", 417, "100-continue"},
		{"after a good request", good + "nonsense\r\n\r\n", 400, "not a valid HTTP request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn := dialTo(t, l)
			go func() { _, _ = io.WriteString(conn, test.input) }() // the server may answer before it has read everything
			responses := bufio.NewReader(conn)
			if strings.HasPrefix(test.input, good) {
				if text := body(t, responses); text != imitation+imitation {
					t.Errorf("the handler's response became %q", text)
				}
			}
			r, err := http.ReadResponse(responses, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			var answer struct {
				Error wire.Problem
				Meta  wire.Meta
			}
			if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || r.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("%s %v: %v", r.Status, r.Header, err)
			}
			if r.StatusCode != test.status || answer.Error.Code != wire.CodeValidation || !strings.Contains(answer.Error.Message, test.says) {
				t.Errorf("%s %+v", r.Status, answer.Error)
			}
			if id := r.Header.Get("X-Request-Id"); id == "" || id != answer.Meta.RequestID {
				t.Errorf("request id %q in the header, %q in the body", id, answer.Meta.RequestID)
			}
		})
	}
}

// Plain HTTP on a port of HTTPS is told so.
func TestPlainHTTPToHTTPS(t *testing.T) {
	t.Parallel()
	l := listenGuarded(t, 100, writePatience)
	server := newHTTPServer(http.NotFoundHandler(), Timeouts{}.orDefaults(), slog.New(slog.DiscardHandler))
	issuer := httptest.NewTLSServer(nil)
	defer issuer.Close()
	server.TLSConfig = issuer.TLS
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(l, "", "") }()
	t.Cleanup(func() { server.Close(); <-ended })
	conn := dialTo(t, l)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if text := body(t, bufio.NewReader(conn)); !strings.Contains(text, "https://") || !strings.Contains(text, `"request_id"`) {
		t.Error(text)
	}
}

func body(t *testing.T, responses *bufio.Reader) string {
	t.Helper()
	r, err := http.ReadResponse(responses, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
