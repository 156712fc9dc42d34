package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// idle is how long a response may stall, before or after its first byte, before
// the client gives up.
const idle = time.Minute

var errIdle = errors.New("nothing has come from there for a minute")

// steadily sends a request that fails when its response stalls. The caller
// closes the response's body.
func (c *Client) steadily(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(idle, func() { cancel(errIdle) })
	answer, err := c.http.Do(request.WithContext(ctx))
	timer.Stop()
	if err != nil {
		cancel(nil)
		return nil, err
	}
	answer.Body = &steady{answer.Body, ctx, timer, cancel}
	return answer, nil
}

// steady is a body that fails when it stalls.
type steady struct {
	io.ReadCloser
	ctx    context.Context
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// Read implements io.Reader.
func (s *steady) Read(p []byte) (int, error) {
	s.timer.Reset(idle)
	n, err := s.ReadCloser.Read(p)
	s.timer.Stop() // the caller may be slow
	if cause := context.Cause(s.ctx); err != nil && err != io.EOF && cause != nil {
		err = cause
	}
	return n, err
}

// Close implements io.Closer.
func (s *steady) Close() error {
	err := s.ReadCloser.Close()
	s.cancel(nil)
	return err
}
