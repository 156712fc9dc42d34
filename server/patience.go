package server

import (
	"net/http"
	"time"
)

// maxStreams bounds the requests that one connection of HTTP/2 makes at once, as its RFC 9113 (6.5.2) recommends: no less.
const maxStreams = 100

// patiently gives each response over HTTP/2 the patience that a connection of HTTP/1.1 has: see [guardedConn]. A client
// of HTTP/2 need not read from its connection slowly to stall a response: it gives the stream no room (RFC 9113, 5.2).
func patiently(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*guardedConn); ok && r.ProtoMajor > 1 {
			w = &streamWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: c.listener.patience}
		}
		next.ServeHTTP(w, r)
	})
}

// streamWriter ends a response over HTTP/2 when one Write takes longer than patience.
type streamWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	bounded  bool // the handler has set a deadline
}

// Write implements io.Writer.
func (w *streamWriter) Write(p []byte) (int, error) {
	if !w.bounded {
		if err := w.control.SetWriteDeadline(time.Now().Add(w.patience)); err != nil {
			return 0, err
		}
	}
	return w.ResponseWriter.Write(p)
}

// SetWriteDeadline is for http.ResponseController. The zero time gives the patience back.
func (w *streamWriter) SetWriteDeadline(deadline time.Time) error {
	w.bounded = !deadline.IsZero()
	return w.control.SetWriteDeadline(deadline)
}

// Unwrap is for http.ResponseController.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
