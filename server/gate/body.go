package gate

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"holdfast/engine/model"
)

// drainTimeout is how long the server may wait for the rest of a body that no
// handler wants, so as to keep the connection.
const drainTimeout = 10 * time.Second

// body is that of a request, which remembers whether it was read to its end.
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

// received is a body that was read whole.
type received struct {
	bytes.Reader
	text []byte
	err  error
}

// Close implements io.Closer.
func (*received) Close() error { return nil }

// ReadBody returns the body of the request, within the gate's bounds. It reads
// the body once and leaves Request.Body at its beginning.
func (x *Exchange) ReadBody() ([]byte, error) {
	if x.body == nil {
		return nil, nil
	}
	whole, ok := x.Request.Body.(*received)
	if !ok {
		whole = &received{}
		x.SetBodyTimeout(x.gate.BodyTimeout)
		// Only the server's own ResponseWriter closes the connection of a body that is too large.
		whole.text, whole.err = io.ReadAll(http.MaxBytesReader(x.ResponseWriter, x.body, x.gate.MaxBody))
		if _, large := errors.AsType[*http.MaxBytesError](whole.err); large {
			whole.text, whole.err = nil, model.Invalid("body", "must have at most %d bytes", x.gate.MaxBody)
		} else if whole.err != nil {
			whole.text, whole.err = nil, x.Unreadable(whole.err)
		}
		x.Request.Body = whole
	}
	whole.Reset(whole.text)
	return whole.text, whole.err
}

// SetBodyTimeout bounds how long the body may take from now on. net/http takes
// the deadline back at the body's end: it watches the connection from then on,
// and would take its passing for the client's going away.
func (x *Exchange) SetBodyTimeout(d time.Duration) {
	_ = http.NewResponseController(x).SetReadDeadline(time.Now().Add(d)) // a test's recorder has none
}

// Unreadable says that a body ended before it was whole. The connection goes
// with it: the server would wait for the rest before it answers.
func (x *Exchange) Unreadable(err error) error {
	x.Header().Set("Connection", "close")
	return &model.Error{
		Code:    model.CodeValidation,
		Message: "body: could not be read to its end; send it whole, and as long as announced",
		Err:     err,
	}
}
