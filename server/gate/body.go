package gate

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"holdfast/engine/model"
)

// drainTimeout is the maximum time the server waits for the rest of an unread body, so that it can keep the
// connection.
const drainTimeout = 10 * time.Second

// body is a request body that records whether it was read to its end.
type body struct {
	io.ReadCloser
	ended bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended = true
	}
	return n, err
}

// received is a completely read body.
type received struct {
	bytes.Reader
	text []byte
	err  error
}

// Close implements io.Closer.
func (*received) Close() error { return nil }

// maxVisitorBody is the maximum size in bytes of the bodies that requests without a key may have: they name a device.
const maxVisitorBody = 8 << 10

// ReadBody returns the request body, within the gate's bounds. It reads the body once and leaves Request.Body at its
// beginning. It returns an error if the key was revoked or has expired while the body was on its way.
func (x *Exchange) ReadBody() ([]byte, error) {
	if x.body == nil {
		return nil, nil
	}
	whole, ok := x.Request.Body.(*received)
	if !ok {
		whole = &received{}
		limit := x.gate.MaxBody
		if x.Call.Operation.Scope == "" {
			limit = min(limit, maxVisitorBody)
		}
		x.SetBodyTimeout(x.gate.BodyTimeout)
		// Only the server's own ResponseWriter closes the connection of a body that is too large.
		whole.text, whole.err = io.ReadAll(http.MaxBytesReader(x.ResponseWriter, x.body, limit))
		if _, large := errors.AsType[*http.MaxBytesError](whole.err); large {
			refused := model.Invalid("body", "must have at most %d bytes", limit)
			refused.Reason = model.ReasonTooLarge
			whole.text, whole.err = nil, refused
		} else if whole.err != nil {
			whole.text, whole.err = nil, x.Unreadable(whole.err)
		} else {
			whole.err = x.gate.Engine.Core.CheckAuthority(x.Call)
		}
		x.Request.Body = whole
	}
	whole.Reset(whole.text)
	return whole.text, whole.err
}

// streamIdle is the maximum time without progress of a streamed body, plus or minus idleStep.
const (
	streamIdle = time.Minute
	idleStep   = time.Second
)

// stream is a body of any length that is being received.
type stream struct {
	x     *Exchange
	moved time.Time // time of the last progress
	whole bool      // it has a deadline as a whole
	ended bool
}

// StreamBody returns the request's body for an upload. It may take as long as it likes while it makes progress. A
// failure to read it is the client's error, not the disk's.
func (x *Exchange) StreamBody() io.Reader { return &stream{x: x} }

// WholeBody is StreamBody for a body that must be there within d.
func (x *Exchange) WholeBody(d time.Duration) io.Reader {
	x.SetBodyTimeout(d)
	return &stream{x: x, whole: true}
}

// Read implements io.Reader. Each read extends the deadline, unless it is that of the whole.
func (b *stream) Read(p []byte) (int, error) {
	if now := time.Now(); !b.whole && now.Sub(b.moved) >= idleStep && !b.ended {
		b.x.SetBodyTimeout(streamIdle)
		b.moved = now
	}
	n, err := b.x.Request.Body.Read(p)
	if err == io.EOF {
		b.ended = true
	} else if err != nil {
		err = b.x.Unreadable(err)
	}
	return n, err
}

// SetBodyTimeout bounds the remaining time of the body. net/http clears the deadline at the body's end: from then on
// it watches the connection, and would take the deadline for the client's departure.
func (x *Exchange) SetBodyTimeout(d time.Duration) {
	_ = http.NewResponseController(x).SetReadDeadline(time.Now().Add(d)) // a test recorder does not support it
}

// Unreadable returns the error for a truncated body. It also closes the connection: otherwise the server would wait
// for the rest before it responds.
func (x *Exchange) Unreadable(err error) error {
	x.Header().Set("Connection", "close")
	return &model.Error{
		Code:    model.CodeValidation,
		Message: "body: could not be read to its end; send it whole, and as long as announced",
		Err:     err,
	}
}
