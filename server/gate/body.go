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

// ReadBody returns the body of a request of the gate, which may have so many
// bytes and take so long. It reads the body once and leaves r.Body at its
// beginning.
func ReadBody(r *http.Request, limit int64, timeout time.Duration) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	whole, ok := r.Body.(*received)
	if !ok {
		whole = &received{}
		whole.text, whole.err = of(r.Context()).readAll(limit, timeout)
		r.Body = whole
	}
	whole.Reset(whole.text)
	return whole.text, whole.err
}

func (x *exchange) readAll(limit int64, timeout time.Duration) ([]byte, error) {
	SetBodyTimeout(x, timeout)
	// Only the server's own ResponseWriter closes the connection of a body that is too large.
	text, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, x.request.Body, limit))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, model.Invalid("body", "must have at most %d bytes", limit)
	}
	if err != nil {
		return nil, Unreadable(x, err)
	}
	return text, nil
}

// SetBodyTimeout bounds how long the body may take from now on. net/http takes
// the deadline back at the body's end: it watches the connection from then on,
// and would take its passing for the client's going away.
func SetBodyTimeout(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d)) // a test's recorder has none
}

// Unreadable says that a body ended before it was whole. The connection goes
// with it: the server would wait for the rest before it answers.
func Unreadable(w http.ResponseWriter, err error) error {
	w.Header().Set("Connection", "close")
	return &model.Error{
		Code:    model.CodeValidation,
		Message: "body: could not be read to its end; send it whole, and as long as announced",
		Err:     err,
	}
}
